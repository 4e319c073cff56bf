"""The page *Use from code*: how programs call an agent, a trial, and their tokens."""

import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_GET, require_POST

from runs.forms.accounts import TokenForm
from runs.forms.runs.inputs import RunForm, input_field_name
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion, Run
from runs.openai.chat import ChatAnswer
from runs.openai.code_examples import (
    EXAMPLES,
    LABELS,
    ExampleCall,
    build_agent_call,
    get_message_variable,
)
from runs.openai.outcomes import find_run_error
from runs.serializers import run_json
from runs.services.accounts.tokens import list_own_tokens
from runs.services.errors import InputsRefused, RunsError
from runs.services.runs.start import freeze_version, start_run
from runs.services.search.human_waits import get_work_seconds
from runs.services.spec.freeze import variables_of_agent
from runs.ui.code_colors import CodeColors
from runs.views.accounts import pop_new_token
from runs.whole_number import parse_whole_number

MAX_VERSIONS = 50
"""Newest versions to choose from."""
CALL_SCOPES = ["read", "run"]


@require_GET
def agent_code(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show an example in the language of `?lang=`, for `?version=` and `?stream=`.

    `?run=` is the run that was sent from here.
    """
    agent = get_called_agent(request, pk)
    return render_code_page(request, agent, ChosenExample(agent, request.GET))


@require_POST
def agent_code_send(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start a run with the message and variables of the form; show its response."""
    agent = get_called_agent(request, pk)
    chosen = ChosenExample(agent, request.GET)
    form = chosen.build_form(request.POST)
    if form.is_valid():
        number = chosen.pinned.number if chosen.pinned else None
        try:
            run = start_run(
                agent,
                by=request.user,
                inputs=form.inputs(),
                frozen=None if number is None else freeze_version(agent, number),
            )
        except InputsRefused as error:
            form.add_field_errors(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            query = urlencode({"lang": chosen.language, **chosen.kept, "run": run.pk})
            return redirect(
                f"{reverse('agent-code', args=[pk])}?{query}#agent-response"
            )
    return render_code_page(request, agent, chosen, form)


def get_called_agent(request: HtmxRequest, pk: int) -> Agent:
    agents = Agent.objects.usable_by(request.user).select_related("provider", "prompt")
    found: Agent = get_object_or_404(agents, pk=pk)
    return found


def render_code_page(
    request: HtmxRequest,
    agent: Agent,
    chosen: "ChosenExample",
    send_form: RunForm | None = None,
) -> HttpResponse:
    context = {
        "agent": agent,
        "may_edit": Agent.objects.editable_by(request.user)
        .filter(pk=agent.pk)
        .exists(),
        "sent": find_example_response(
            agent, request.GET.get("run", ""), by=request.user, model=chosen.call.model
        ),
        "send_form": send_form or chosen.build_form(),
        "here": request.get_full_path(),
        **chosen.build_context(),
    }
    parts = ("agents/code.html", "agents/_code.html")
    if request.htmx:
        return render_page_or_part(request, *parts, context)
    context |= {
        "form": TokenForm(initial={"name": agent.name[:120], "scopes": CALL_SCOPES}),
        "made": pop_new_token(request),
        "tokens": list_own_tokens(request.user),
        "next": f"{reverse('agent-code', args=[agent.pk])}?{chosen.query}",
    }
    return render_page_or_part(request, *parts, context)


class ChosenExample:
    """The example that a query names: language, version, and whether it streams."""

    def __init__(self, agent: Agent, query: QueryDict) -> None:
        self._agent = agent
        self.versions = list(agent.versions.select_related("spec")[:MAX_VERSIONS])
        self.pinned = find_pinned_version(self.versions, query.get("version", ""))
        language = query.get("lang", "")
        self.language = language if language in EXAMPLES else "python"
        self.names = variables_of_agent(
            agent, self.pinned or next(iter(self.versions), None)
        )
        self.call: ExampleCall = build_agent_call(
            agent,
            self.names,
            version=self.pinned.number if self.pinned else None,
            stream="stream" in query,
        )
        self.kept = {n: query[n] for n in ("version", "stream") if query.get(n)}

    @property
    def query(self) -> str:
        return urlencode({"lang": self.language, **self.kept})

    def build_form(self, data: QueryDict | None = None) -> RunForm:
        """Return the form that sends it, with the message of the example."""
        message = get_message_variable(self.names)
        return RunForm(
            self._agent,
            data,
            names=self.names,
            initial={input_field_name(message): self.call.message},
            auto_id="send_%s",
        )

    def build_context(self) -> dict[str, Any]:
        example = EXAMPLES[self.language](self.call)
        return {
            "call": self.call,
            "example": example,
            "html": mark_safe(CodeColors().highlight(example.code, example.language)),  # noqa: S308  (escaped there)
            "lang": self.language,
            "languages": [
                (name, label, "?" + urlencode({"lang": name, **self.kept}))
                for name, label in LABELS.items()
            ],
            "versions": self.versions,
            "pinned": self.pinned,
            "query": self.query,
        }


def find_pinned_version(
    versions: list[AgentVersion], number: str
) -> AgentVersion | None:
    asked = parse_whole_number(number)
    return next((one for one in versions if one.number == asked), None)


class ExampleResponse(NamedTuple):
    """The run that was sent, and what its caller would get."""

    run: Run
    status: int | None
    """Of HTTP; None until the run is over."""
    html: SafeString
    seconds: float | None = None
    first_token: float | None = None
    """Seconds from the first request to a model to its first text."""


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
        get_work_seconds(run),
        run.calls.order_by("number").values_list("first_token", flat=True).first(),
    )
