"""The right pane of an agent's page: test chat, exact prompt, or comparison."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.forms.agents.comparison import MAX_COLUMNS, ComparisonForm
from runs.forms.runs.inputs import RunForm, input_field_name
from runs.htmx import HtmxRequest, wants_part
from runs.models import Agent, Conversation, Run
from runs.services.agents.publish import is_published
from runs.services.agents.save import get_draft_token
from runs.services.agents.trials import start_comparison, start_test_chat_run
from runs.services.errors import DraftNotShown, InputsRefused, RunsError
from runs.services.spec.freeze import variables_of_agent
from runs.store.history import extract_question
from runs.views.chat.turns import (
    RunTurn,
    build_run_turns,
    build_stream_key,
    load_runs_by_key,
)
from runs.views.run.context import select_page_relations
from runs.whole_number import parse_whole_number

PANE_TABS = ("chat", "prompt", "side")
MAX_TURNS = 20
UNFOLDED_TURNS = 2
"""Turns shown in a test chat."""


class DraftTurn(NamedTuple):
    """A message and its run, with what the run did."""

    question: str
    run: Run
    turn: RunTurn

    @property
    def fields(self) -> dict[str, Any]:
        """The inputs of the run, by the names of their form fields."""
        return {input_field_name(k): value for k, value in self.run.inputs.items()}


class DraftChat(NamedTuple):
    """A test chat: its turns, and the form for the next message."""

    form: RunForm
    turns: list[DraftTurn]
    conversation: Conversation | None
    live: str
    """Key of the live stream of the runs that have not ended."""
    rival: int | None
    """Number of the version to compare the draft with; None without one."""

    @property
    def latest_turns(self) -> list[DraftTurn]:
        """The turns that are shown; the earlier ones are folded."""
        return self.turns[len(self.earlier_turns) :]

    @property
    def earlier_turns(self) -> list[DraftTurn]:
        """The first turns, as far as all of them have ended."""
        earlier = self.turns[:-UNFOLDED_TURNS]
        return list(takewhile(lambda one: one.run.is_over, earlier))


class DraftComparison(NamedTuple):
    """A comparison: its form, and its runs if it was started."""

    form: ComparisonForm
    turns: list[DraftTurn]
    live: str


@require_POST
def agent_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Send the next message to the draft, as a test run."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    conversation = find_draft_conversation(
        request.user, agent, request.POST.get("conversation_id", "")
    )
    form = RunForm(agent, request.POST, names=variables_of_agent(agent))
    if form.is_valid():
        try:
            check_draft_is_shown(request, agent)
            run = start_test_chat_run(
                agent, by=request.user, inputs=form.inputs(), conversation=conversation
            )
        except InputsRefused as error:
            form.add_field_errors(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            asked = {"try": "chat", "conversation": str(run.conversation_id)}
            return redirect_to_test_pane(request, agent, asked)
    context = {
        "agent": agent,
        "trying": "chat",
        "chat": build_draft_chat(agent, conversation, form),
    }
    return render_test_pane(request, context)


@require_POST
def agent_side_by_side(request: HtmxRequest, pk: int) -> HttpResponse:
    """Run the same input with up to four versions or models, as test runs."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    form = ComparisonForm(agent, request.POST, user=request.user)
    if form.is_valid():
        contenders = form.contenders()
        try:
            if any(one.version is None for one in contenders):
                check_draft_is_shown(request, agent)
            runs = start_comparison(
                agent, by=request.user, inputs=form.inputs(), contenders=contenders
            )
        except InputsRefused as error:
            form.add_field_errors(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            key = "-".join(str(run.pk) for run in runs)
            return redirect_to_test_pane(request, agent, {"try": "side", "runs": key})
    context = {"agent": agent, "trying": "side", "side": DraftComparison(form, [], "")}
    return render_test_pane(request, context)


def check_draft_is_shown(request: HtmxRequest, agent: Agent) -> None:
    """Raise `DraftNotShown` if the page that sent the test shows another draft."""
    seen = request.POST.get("seen")
    if seen is not None and seen != get_draft_token(agent):
        raise DraftNotShown


def redirect_to_test_pane(
    request: HtmxRequest, agent: Agent, asked: dict[str, str]
) -> HttpResponse:
    """Redirect to the pane that shows the new runs; return the pane for htmx."""
    url = f"{reverse('agent-edit', args=[agent.pk])}?{urlencode(asked)}"
    if not wants_part(request):
        return redirect(url)
    context = {
        "agent": agent,
        **build_test_pane_context(agent, asked, user=request.user),
    }
    response = render(request, "agents/_try.html", context)
    response["HX-Push-Url"] = url
    return response


def render_test_pane(request: HtmxRequest, context: dict[str, Any]) -> HttpResponse:
    """Show the pane with its errors; as a whole page without htmx."""
    part = "agents/_try.html" if wants_part(request) else "agents/try.html"
    return render(request, part, context)


def build_test_pane_context(
    agent: Agent, asked: Mapping[str, str], *, user: User
) -> dict[str, Any]:
    way = asked.get("try", "")
    way = way if way in PANE_TABS else "chat"
    context: dict[str, Any] = {"trying": way}
    if way == "chat":
        conversation = find_draft_conversation(
            user, agent, asked.get("conversation", "")
        )
        form = build_draft_chat_form(agent, conversation)
        context["chat"] = build_draft_chat(agent, conversation, form)
    if way == "side":
        rows = select_page_relations(Run.objects.visible_to(user).filter(agent=agent))
        runs = load_runs_by_key(asked.get("runs", ""), rows, most=MAX_COLUMNS)
        given = get_side_by_side_initial(runs)
        columns = ComparisonForm(agent, user=user, initial=given)
        turns = build_draft_turns(runs)
        context["side"] = DraftComparison(columns, turns, build_stream_key(runs))
    return context


def find_draft_conversation(
    user: User, agent: Agent, asked: str
) -> Conversation | None:
    """Return the requested test chat, or the newest; None for a new one."""
    if asked == "new":
        return None
    mine = Conversation.objects.filter(owner=user, agent=agent, is_test=True)
    if (number := parse_whole_number(asked)) is not None:
        return mine.filter(pk=number).first()
    return mine.order_by("-pk").first()


def build_draft_chat_form(agent: Agent, conversation: Conversation | None) -> RunForm:
    """Return the form for the next message, with the variables of the last one."""
    last = conversation.runs.order_by("-pk").first() if conversation else None
    given = {k: v for k, v in (last.inputs if last else {}).items() if k != "input"}
    initial = {input_field_name(name): value for name, value in given.items()}
    return RunForm(agent, names=variables_of_agent(agent), initial=initial)


def build_draft_chat(
    agent: Agent, conversation: Conversation | None, form: RunForm
) -> DraftChat:
    rows = conversation.runs.order_by("-pk") if conversation else Run.objects.none()
    runs = list(select_page_relations(rows)[:MAX_TURNS])[::-1]
    return DraftChat(
        form,
        build_draft_turns(runs),
        conversation,
        build_stream_key(runs),
        find_rival_version(agent) if runs else None,
    )


def find_rival_version(agent: Agent) -> int | None:
    """Return the newest version that is not the draft itself."""
    newest = agent.versions.order_by("-number").values_list("number", flat=True)
    numbers = list(newest[:2])
    if numbers and is_published(agent):
        numbers = numbers[1:]
    return next(iter(numbers), None)


def build_draft_turns(runs: list[Run]) -> list[DraftTurn]:
    pairs = zip(runs, build_run_turns(runs), strict=True)
    return [DraftTurn(extract_question(run.inputs), run, turn) for run, turn in pairs]


def get_side_by_side_initial(runs: list[Run]) -> dict[str, Any]:
    """Return the initial values that would start these runs again."""
    initial: dict[str, Any] = {}
    for number, run in enumerate(runs, 1):
        initial |= {input_field_name(name): value for name, value in run.inputs.items()}
        model = run.spec.body.get("model", {})
        its = (model.get("provider_id"), model.get("model"))
        changed = run.version is None and its != (
            run.agent.provider_id,
            run.agent.model,
        )
        initial[f"version-{number}"] = (
            str(run.version.number) if run.version else "draft"
        )
        if changed:
            key = f"{model.get('provider_id')}:{model.get('model')}"
            initial[f"model-{number}"] = key
    return initial
