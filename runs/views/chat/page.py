"""The chat: for people who only use agents."""

from collections import defaultdict
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from runs.forms.run import RunForm, name_of
from runs.htmx import HtmxRequest, page_or_part, wants_part
from runs.models import Agent, Conversation, Run
from runs.models.runs import UNFINISHED
from runs.services.branch_talk import branch_talk, places_of
from runs.services.cancel_run import cancel_run
from runs.services.errors import InputsRefused, RunsError
from runs.services.record import question_of
from runs.services.start_talk import start_talk
from runs.services.turns_of_talk import turns_of_talk
from runs.views.run_context import loaded
from runs.views.turns import Turn, live_key, turns_of
from runs.whole_number import whole_number

LISTED = 50
"""Conversations in the list."""
SHOWN = 50
"""Turns of a conversation on its page."""


class TalkRow(NamedTuple):
    """A conversation in a list."""

    talk: Conversation
    status: str
    last: str
    """The newest question."""


class Version(NamedTuple):
    """Another way a conversation went on at a place."""

    number: int
    talk_id: int
    is_here: bool


class ChatTurn(NamedTuple):
    """A question, its run, and what else was said there."""

    question: str
    run: Run
    turn: Turn
    versions: list[Version]


@require_GET
def chat(request: HtmxRequest) -> HttpResponse:
    """Show the agents one can talk to, and one's last conversations."""
    agents = Agent.objects.usable_by(request.user).filter(archived_at=None)
    talks = rows_of(talks_of(request.user))
    context = {
        "agents": agents.order_by("name"),
        "talks": talks,
        "is_moving": is_moving(talks),
    }
    return page_or_part(request, "chat/chat.html", "chat/_talks.html", context)


@require_GET
def chat_agent(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show one's conversations with an agent, and the form for a new one."""
    agent = agent_of(request.user, slug)
    return shown(request, agent, None, RunForm(agent))


@require_GET
def chat_talk(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Show one conversation."""
    agent = agent_of(request.user, slug)
    talk = talk_of(request.user, agent, pk)
    return shown(request, agent, talk, form_of(agent, talk))


@require_GET
def chat_newer(request: HtmxRequest, slug: str, pk: int, after: int) -> HttpResponse:
    """Say how many turns were begun elsewhere since the page was shown."""
    agent = agent_of(request.user, slug)
    talk = talk_of(request.user, agent, pk)
    newer = turns_of_talk(talk).filter(pk__gt=after).count()
    context = {"agent": agent, "talk": talk, "newest": after, "newer": newer}
    return render(request, "chat/_newer.html", context)


@require_POST
def chat_say(request: HtmxRequest, slug: str) -> HttpResponse:
    """Say something: the next thing in a conversation, or the first of a new one."""
    agent = agent_of(request.user, slug)
    asked = whole_number(request.POST.get("talk", ""))
    talk = None if asked is None else talk_of(request.user, agent, asked)
    form = RunForm(agent, request.POST)
    if form.is_valid():
        try:
            run = start_talk(agent, by=request.user, inputs=form.inputs(), talk=talk)
        except InputsRefused as error:
            form.take(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            return redirect("chat-talk", slug, run.conversation_id)
    return shown(request, agent, talk, form)


@require_POST
def chat_branch(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Say something else in the place of a turn; the same again where it is empty."""
    agent = agent_of(request.user, slug)
    talk = talk_of(request.user, agent, pk)
    run = get_object_or_404(turns_of_talk(talk), pk=run_pk)
    text = request.POST.get("input", "")
    name = "input" if "input" in run.inputs else next(iter(run.inputs), "input")
    inputs = {**run.inputs, name: text} if text.strip() else run.inputs
    try:
        new = branch_talk(talk, at=run, by=request.user, inputs=inputs)
    except RunsError as refused:
        messages.error(request, str(refused))
        return redirect("chat-talk", slug, pk)
    return redirect("chat-talk", slug, new.conversation_id)


@require_POST
def chat_stop(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Stop what is not over in a conversation."""
    talk = talk_of(request.user, agent_of(request.user, slug), pk)
    for run in turns_of_talk(talk).filter(ended_at=None):
        cancel_run(run, by=request.user)
    return redirect("chat-talk", slug, pk)


@require_POST
def chat_rate(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Say that an answer is good or poor; the same once more takes it back."""
    talk = talk_of(request.user, agent_of(request.user, slug), pk)
    run = get_object_or_404(turns_of_talk(talk), pk=run_pk)
    asked = {"good": 1, "poor": -1}.get(request.POST.get("rating", ""))
    rating = None if run.rating == asked else asked
    Run.objects.filter(pk=run.pk).update(rating=rating)
    page = request.path.split("/rate/")[0]
    is_late = turns_of_talk(talk).filter(pk__gt=run.pk).count() < SHOWN
    window = "" if is_late else f"?before={run.pk + 1}"
    return redirect(f"{page}/{window}#chat-turn-{run.pk}")


@require_POST
def chat_rename(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Give a conversation another title."""
    talk = talk_of(request.user, agent_of(request.user, slug), pk)
    title = " ".join(request.POST.get("title", "").replace("\0", "").split())
    if not title or len(title) > 200:
        messages.error(request, "A title has 1 to 200 characters. It is as before.")
    else:
        talk.title = title
        talk.save(update_fields=["title"])
    return redirect("chat-talk", slug, pk)


@require_POST
def chat_archive(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Put a conversation away; its runs stay in the list of runs."""
    talk = talk_of(request.user, agent_of(request.user, slug), pk)
    talk.archived_at = timezone.now()
    talk.save(update_fields=["archived_at"])
    messages.success(request, "The conversation is put away. Its runs are kept.")
    return redirect("chat-agent", slug)


def agent_of(user: User, slug: str) -> Agent:
    """Return an agent one may use; 404 otherwise."""
    return get_object_or_404(Agent.objects.usable_by(user), slug=slug)


def talk_of(user: User, agent: Agent, pk: int) -> Conversation:
    """Return one's own conversation; 404 otherwise."""
    mine = Conversation.objects.select_related("agent", "branch_of")
    return get_object_or_404(mine, pk=pk, owner=user, agent=agent, is_test=False)


def talks_of(user: User) -> QuerySet[Conversation]:
    """Return one's conversations with what their lists show, the newest first.

    Those with an agent that one may use no more are left out: their pages are gone.
    """
    newest = Run.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    return (
        Conversation.objects.filter(owner=user, is_test=False, archived_at=None)
        .filter(agent__in=Agent.objects.usable_by(user))
        .select_related("agent")
        .annotate(
            status=Subquery(newest.values("status")[:1]),
            last=Subquery(newest.values("title")[:1]),
            last_pk=Subquery(newest.values("pk")[:1]),
            last_at=Subquery(newest.values("created_at")[:1]),
        )
        .filter(last_pk__isnull=False)
        .order_by("-last_pk")
    )


def rows_of(talks: QuerySet[Conversation]) -> list[TalkRow]:
    """Return the newest of them as rows."""
    found: list[Any] = list(talks[:LISTED])  # with what `talks_of` has added
    return [TalkRow(talk, talk.status, talk.last) for talk in found]


def is_moving(talks: list[TalkRow]) -> bool:
    """Whether a list may say something else in a moment."""
    return any(row.status in UNFINISHED for row in talks)


def form_of(agent: Agent, talk: Conversation) -> RunForm:
    """Return the form of the next turn, with the other variables of the last one."""
    last = turns_of_talk(talk).order_by("-pk").first()
    given = {k: v for k, v in (last.inputs if last else {}).items() if k != "input"}
    return RunForm(agent, initial={name_of(name): v for name, v in given.items()})


def shown(
    request: HtmxRequest, agent: Agent, talk: Conversation | None, form: RunForm
) -> HttpResponse:
    """Show a conversation, or the beginning of one; to htmx only the list beside it."""
    talks = rows_of(talks_of(request.user).filter(agent=agent))
    context: dict[str, Any] = {
        "agent": agent,
        "talk": talk,
        "talks": talks,
        "is_moving": is_moving(talks),
    }
    if not wants_part(request):
        writes = talk or not talks or "new" in request.GET or request.method == "POST"
        view = 2 if writes else 1  # on a phone: the talk, or the list
        context |= said_in(request, talk) | {"form": form, "view": view}
    return page_or_part(request, "chat/talk.html", "chat/_list.html", context)


def said_in(request: HtmxRequest, talk: Conversation | None) -> dict[str, Any]:
    """Return the turns of a conversation that its page shows."""
    said = turns_of_talk(talk) if talk else Run.objects.none()
    before = whole_number(request.GET.get("before", ""))
    runs = newest_of(said, before=before)
    has_earlier = len(runs) > SHOWN
    runs = runs[-SHOWN:]
    return {
        "turns": turns_in(talk, runs) if talk else [],
        "live": live_key(runs[-8:]),
        "is_busy": any(not run.is_over for run in runs),
        "earlier": runs[0].pk if has_earlier else None,
        "newest": runs[-1].pk if runs else 0,
        "is_window": before is not None,
    }


def newest_of(said: QuerySet[Run], *, before: int | None) -> list[Run]:
    """Return the newest runs up to one more than are shown, the oldest first."""
    if before is not None:
        said = said.filter(pk__lt=before)
    runs = loaded(said).select_related("conversation__branch_of")
    return list(runs.order_by("-pk")[: SHOWN + 1])[::-1]


def turns_in(talk: Conversation, runs: list[Run]) -> list[ChatTurn]:
    """Return each turn with the other ways the conversation went on there."""
    places = places_of(talk, runs)
    wanted = {place.run_pk for place in places.values()}
    branches: dict[int, list[int]] = defaultdict(list)
    found = Conversation.objects.filter(
        branch_at__in=wanted, owner=talk.owner, archived_at=None
    )
    for branch_at, pk in found.order_by("pk").values_list("branch_at", "pk"):
        branches[branch_at or 0].append(pk)
    turns = []
    for run, turn in zip(runs, turns_of(runs), strict=True):
        place, home = places[run.pk]
        ways = [home.pk, *branches[place]]
        here = run.conversation_id
        versions = [Version(n, way, way == here) for n, way in enumerate(ways, 1)]
        several = versions if len(versions) > 1 else []
        turns.append(ChatTurn(question_of(run.inputs), run, turn, several))
    return turns
