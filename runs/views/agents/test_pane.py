"""The right pane of an agent's page: a test chat, the exact prompt, side by side."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.forms.run import RunForm, name_of
from runs.forms.side_by_side import COLUMNS, SideForm
from runs.htmx import HtmxRequest, wants_part
from runs.models import Agent, Conversation, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.freeze_agent import variables_of_agent
from runs.services.record import question_of
from runs.services.start_test import start_side_by_side, start_test_turn
from runs.views.run_context import loaded
from runs.views.turns import Turn, live_key, runs_in, turns_of
from runs.whole_number import whole_number

WAYS = ("chat", "prompt", "side")
SHOWN = 20
"""Turns of a chat."""


class ShownTurn(NamedTuple):
    """A question and its run, with what the run did."""

    question: str
    run: Run
    turn: Turn


class Talk(NamedTuple):
    """A test chat: its turns, and the form for the next one."""

    form: RunForm
    turns: list[ShownTurn]
    conversation: Conversation | None
    live: str
    """Key of the stream of what is not over."""


class Side(NamedTuple):
    """A comparison: its form, and its runs where it was started."""

    form: SideForm
    turns: list[ShownTurn]
    live: str


@require_POST
def agent_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Say the next thing to the draft, as a test."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    talk = talk_of(request.user, agent, request.POST.get("talk", ""))
    form = RunForm(agent, request.POST, names=variables_of_agent(agent))
    if form.is_valid():
        try:
            run = start_test_turn(
                agent, by=request.user, inputs=form.inputs(), talk=talk
            )
        except InputsRefused as error:
            form.take(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            asked = {"try": "chat", "talk": str(run.conversation_id)}
            return done(request, agent, asked)
    context = {"agent": agent, "trying": "chat", "talk": shown_talk(talk, form)}
    return render_pane(request, context)


@require_POST
def agent_side_by_side(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the same input to up to four models or versions, as tests."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    form = SideForm(agent, request.POST, user=request.user)
    if form.is_valid():
        try:
            runs = start_side_by_side(
                agent,
                by=request.user,
                inputs=form.inputs(),
                contenders=form.contenders(),
            )
        except InputsRefused as error:
            form.take(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            key = "-".join(str(run.pk) for run in runs)
            return done(request, agent, {"try": "side", "runs": key})
    context = {"agent": agent, "trying": "side", "side": Side(form, [], "")}
    return render_pane(request, context)


def done(request: HtmxRequest, agent: Agent, asked: dict[str, str]) -> HttpResponse:
    """Lead to the pane that shows what was started; the part itself to htmx."""
    url = f"{reverse('agent-edit', args=[agent.pk])}?{urlencode(asked)}"
    if not wants_part(request):
        return redirect(url)
    context = {"agent": agent, **try_context(agent, asked, user=request.user)}
    response = render(request, "agents/_try.html", context)
    response["HX-Push-Url"] = url
    return response


def render_pane(request: HtmxRequest, context: dict[str, Any]) -> HttpResponse:
    """Show the pane with what is wrong; around it a page, where there is no htmx."""
    part = "agents/_try.html" if wants_part(request) else "agents/try.html"
    return render(request, part, context)


def try_context(
    agent: Agent, asked: Mapping[str, str], *, user: User
) -> dict[str, Any]:
    """Return what the pane shows, as the address asks for it."""
    way = asked.get("try", "")
    way = way if way in WAYS else "chat"
    context: dict[str, Any] = {"trying": way}
    if way == "chat":
        talk = talk_of(user, agent, asked.get("talk", ""))
        context["talk"] = shown_talk(talk, talk_form(agent, talk))
    if way == "side":
        rows = loaded(Run.objects.visible_to(user).filter(agent=agent))
        runs = runs_in(asked.get("runs", ""), rows, most=COLUMNS)
        form = SideForm(agent, user=user, initial=initial_of(runs))
        turns = shown_turns(runs)
        context["side"] = Side(form, turns, live_key(runs))
    return context


def talk_of(user: User, agent: Agent, asked: str) -> Conversation | None:
    """Return the test chat that was asked for, or the newest; None for a new one."""
    if asked == "new":
        return None
    mine = Conversation.objects.filter(owner=user, agent=agent, is_test=True)
    if (number := whole_number(asked)) is not None:
        return mine.filter(pk=number).first()
    return mine.order_by("-pk").first()


def talk_form(agent: Agent, talk: Conversation | None) -> RunForm:
    """Return the form for the next turn, with the variables of the last one."""
    last = talk.runs.order_by("-pk").first() if talk else None
    given = {k: v for k, v in (last.inputs if last else {}).items() if k != "input"}
    initial = {name_of(name): value for name, value in given.items()}
    return RunForm(agent, names=variables_of_agent(agent), initial=initial)


def shown_talk(talk: Conversation | None, form: RunForm) -> Talk:
    """Return a chat as it is shown."""
    rows = talk.runs.order_by("-pk") if talk else Run.objects.none()
    runs = list(loaded(rows)[:SHOWN])[::-1]
    return Talk(form, shown_turns(runs), talk, live_key(runs))


def shown_turns(runs: list[Run]) -> list[ShownTurn]:
    """Return runs as turns."""
    pairs = zip(runs, turns_of(runs), strict=True)
    return [ShownTurn(question_of(run.inputs), run, turn) for run, turn in pairs]


def initial_of(runs: list[Run]) -> dict[str, Any]:
    """Return the fields that would start these runs again."""
    initial: dict[str, Any] = {}
    for number, run in enumerate(runs, 1):
        initial |= {name_of(name): value for name, value in run.inputs.items()}
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
