"""A conversation as a file, Markdown or JSON, with masked secrets.

It has the turns of the branch that the page shows, each masked as a shared run is.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET
from pydantic_core import to_json

from runs.htmx import HtmxRequest
from runs.models import Conversation, Run
from runs.serializers import format_timestamp
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.mask_secrets import SecretMask
from runs.store.history import extract_question
from runs.store.partial_texts import load_partial_texts
from runs.ui.format import format_date_time
from runs.ui.status_badge import get_status_label
from runs.views.chat.access import get_own_conversation
from runs.views.run_actions.download import build_download

EXPORT_FORMAT = "agentsite-conversation/1"
"""Name and version of the JSON file's shape."""


class ExportedTurn(NamedTuple):
    """A question and its answer, masked."""

    run: Run
    question: str
    inputs: dict[str, Any]
    answer: Any
    """Text or JSON; None without an answer."""
    stopped_text: str
    """What the model had written of an answer that was never complete."""
    error: str


@require_GET
def chat_export_markdown(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    conversation = get_own_conversation(request.user, slug, pk)
    turns = list(iter_exported_turns(conversation))
    facts = _("Conversation with %(agent)s, exported %(time)s UTC")
    values = {
        "agent": conversation.agent.name,
        "time": format_date_time(timezone.now()),
    }
    parts = [f"# {mask_title(conversation, turns)}", facts % values]
    for turn in turns:
        parts += ["**" + _("You") + "**", turn.question]
        parts += [f"**{conversation.agent.name}**", format_exported_answer(turn)]
    text = "\n\n".join(parts) + "\n"
    body = text.encode("utf-8", "replace")
    return build_download(body, f"conversation-{pk}.md", "text/markdown")


@require_GET
def chat_export_json(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    conversation = get_own_conversation(request.user, slug, pk)
    turns = list(iter_exported_turns(conversation))
    shape = {
        "format": EXPORT_FORMAT,
        "title": mask_title(conversation, turns),
        "agent": {"slug": slug, "name": conversation.agent.name},
        "created_at": format_timestamp(conversation.created_at),
        "turns": [build_turn_json(turn) for turn in turns],
    }
    text = to_json(shape, indent=2, inf_nan_mode="null")
    return build_download(text, f"conversation-{pk}.json", "application/json")


def iter_exported_turns(conversation: Conversation) -> Iterator[ExportedTurn]:
    """Yield the turns, oldest first."""
    said = get_conversation_turns(conversation).select_related("owner", "spec")
    runs = list(said.order_by("pk"))
    stopped = load_partial_texts(runs)
    for run in runs:
        mask = SecretMask(run)
        inputs = mask.json(run.inputs)
        yield ExportedTurn(
            run,
            question=extract_question(inputs),
            inputs=inputs,
            answer=mask.json(run.answer),
            stopped_text=mask.text(stopped.get(run.pk, "")),
            error=mask.text(run.error_message),
        )


def mask_title(conversation: Conversation, turns: list[ExportedTurn]) -> str:
    """Return the title without secrets."""
    title = conversation.title or _("Conversation")
    return SecretMask(turns[0].run).text(title) if turns else title


def format_exported_answer(turn: ExportedTurn) -> str:
    """Return the answer as Markdown, or how the run ended without one."""
    if isinstance(turn.answer, str):
        return turn.answer
    if turn.answer is not None:
        text = to_json(turn.answer, indent=2, inf_nan_mode="null").decode()
        return f"```json\n{text}\n```"
    status = f"*{get_status_label(turn.run.status)}*"
    return "\n\n".join(filter(None, [turn.stopped_text, status, turn.error]))


def build_turn_json(turn: ExportedTurn) -> dict[str, Any]:
    run = turn.run
    return {
        "run": run.pk,
        "status": run.status,
        "inputs": turn.inputs,
        "answer": turn.answer,
        "stopped_text": turn.stopped_text,
        "error": {"code": run.error_code, "message": turn.error}
        if run.error_code
        else None,
        "rating": run.rating,
        "created_at": format_timestamp(run.created_at),
        "ended_at": format_timestamp(run.ended_at),
    }
