"""The response to an example that was sent from the page *Use from code*."""

import json
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils.safestring import SafeString, mark_safe

from runs.models import Agent, Run
from runs.openai.chat import ChatAnswer
from runs.openai.outcomes import find_run_error
from runs.serializers import run_json
from runs.ui.code_colors import CodeColors
from runs.whole_number import parse_whole_number


class ExampleResponse(NamedTuple):
    """The run that was sent, and what its caller would get."""

    run: Run
    status: int | None
    """Of HTTP; None until the run is over."""
    html: SafeString


def find_example_response(
    agent: Agent, number: str, *, by: User, model: str
) -> ExampleResponse | None:
    """Return the response of a run of the agent; None if `by` may not see it."""
    pk = parse_whole_number(number)
    if pk is None:
        return None
    runs = Run.objects.visible_to(by).filter(agent=agent, pk=pk)
    run = runs.select_related("agent", "version", "conversation__branch_of").first()
    if run is None:
        return None
    if not run.is_over:
        return ExampleResponse(run, None, SafeString(""))
    shape = run_json(run)
    error = find_run_error(shape)
    created = int(run.created_at.timestamp())
    answer = ChatAnswer(run_id=run.pk, model=model, created=created)
    body = error.body if error is not None else answer.build_whole([], shape)
    code = json.dumps(body, ensure_ascii=False, indent=2)
    return ExampleResponse(
        run,
        error.status if error is not None else 200,
        mark_safe(CodeColors().highlight(code, "json")),  # noqa: S308  (escaped there)
    )
