"""A conversation on its page: a window of its turns, and the form of the next one."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpResponse

from runs.forms.runs.inputs import RunForm, input_field_name
from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Agent, Conversation, Run
from runs.services.agents.publish import get_latest_version
from runs.services.conversations.messages import can_continue_answer
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.spec.definition import (
    get_agent_description,
    get_suggested_questions,
    uses_memory,
)
from runs.store.history import extract_question
from runs.views.chat.branches import TurnBranches, load_turn_branches
from runs.views.chat.conversation_list import build_list_context
from runs.views.chat.turns import RunTurn, build_run_turns, build_stream_key
from runs.views.run.context import select_page_relations
from runs.whole_number import parse_whole_number

TURNS_PER_PAGE = 50
"""Turns of a conversation on its page."""
CONVERSATION_VIEW = 2
"""Of the two panes, which a phone shows one at a time."""


class ChatTurn(NamedTuple):
    """A question, its run, and the other branches at this message."""

    question: str
    run: Run
    turn: RunTurn
    branches: TurnBranches


def render_new_conversation(
    request: HtmxRequest, agent: Agent, form: RunForm
) -> HttpResponse:
    """Show the form of a new conversation; to HTMX only the list beside it."""
    context = build_list_context(request, agent=agent, conversation=None)
    context |= build_chat_agent_context(agent)
    context |= {"form": form, "view": CONVERSATION_VIEW}
    return render_page_or_part(request, "chat/new.html", "chat/_list.html", context)


def render_conversation(
    request: HtmxRequest, conversation: Conversation, form: RunForm
) -> HttpResponse:
    """Show a conversation; to HTMX only the list beside it."""
    agent = conversation.agent
    context = build_list_context(request, agent=agent, conversation=conversation)
    if not wants_part(request):
        context |= build_turns_context(request, conversation)
        context |= build_chat_agent_context(agent)
        context |= {
            "conversation": conversation,
            "form": form,
            "is_closed": bool(agent.archived_at or conversation.archived_at),
            "view": CONVERSATION_VIEW,
        }
    return render_page_or_part(
        request, "chat/conversation.html", "chat/_list.html", context
    )


def build_chat_agent_context(agent: Agent) -> dict[str, Any]:
    """Return what the chat says of an agent, as published."""
    version = get_latest_version(agent)
    return {
        "agent": agent,
        "description": get_agent_description(agent, version),
        "has_memory": uses_memory(agent, version),
        "questions": get_suggested_questions(agent, version),
    }


def build_next_turn_form(conversation: Conversation) -> RunForm:
    """Return the form of the next message, with the last run's other inputs."""
    last = get_conversation_turns(conversation).order_by("-pk").first()
    given = {k: v for k, v in (last.inputs if last else {}).items() if k != "input"}
    initial = {input_field_name(name): v for name, v in given.items()}
    return RunForm(conversation.agent, initial=initial)


def build_turns_context(
    request: HtmxRequest, conversation: Conversation
) -> dict[str, Any]:
    said = get_conversation_turns(conversation)
    before = parse_whole_number(request.GET.get("before", ""))
    at = parse_whole_number(request.GET.get("at", ""))
    if before is None and at is not None:
        before = get_turn_window_end(said, at=at)
    runs = load_newest_runs(said, before=before)
    has_earlier = len(runs) > TURNS_PER_PAGE
    runs = runs[-TURNS_PER_PAGE:]
    return {
        "turns": build_chat_turns(conversation, runs),
        "live": build_stream_key(runs[-8:]),
        "is_busy": any(not run.is_over for run in runs),
        "earlier": runs[0].pk if has_earlier else None,
        "newest": runs[-1].pk if runs else 0,
        "turns_state": build_turns_state(runs),
        "can_continue": bool(runs) and can_continue_answer(runs[-1]),
        "is_window": before is not None,
    }


def build_turns_state(runs: Iterable[Run]) -> str:
    """Return a digest that changes when one of `runs` ends or is resumed."""
    states = sorted((run.pk, run.seq if run.is_over else None) for run in runs)
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def load_turns_state(said: QuerySet[Run], *, newest: int) -> str:
    """Return the same digest for the page of which `newest` is the last run."""
    shown = said.filter(pk__lte=newest).order_by("-pk").only("status", "seq")
    return build_turns_state(shown[:TURNS_PER_PAGE])


def get_turn_window_end(said: QuerySet[Run], *, at: int) -> int | None:
    """Return before which run a window with run `at` ends; None if it is a late one."""
    is_late = said.filter(pk__gt=at).count() < TURNS_PER_PAGE
    return None if is_late else at + 1


def load_newest_runs(said: QuerySet[Run], *, before: int | None) -> list[Run]:
    """Return the newest runs, oldest first, one more than the page shows."""
    if before is not None:
        said = said.filter(pk__lt=before)
    runs = select_page_relations(said).select_related("conversation__branch_of")
    return list(runs.order_by("-pk")[: TURNS_PER_PAGE + 1])[::-1]


def build_chat_turns(conversation: Conversation, runs: list[Run]) -> list[ChatTurn]:
    """Return each turn with the other branches at its place."""
    branches = load_turn_branches(conversation, runs)
    return [
        ChatTurn(extract_question(run.inputs), run, turn, branches[run.pk])
        for run, turn in zip(runs, build_run_turns(runs), strict=True)
    ]
