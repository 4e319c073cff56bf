"""The pages of the chat: all agents, a new conversation, and a conversation."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.forms.runs.inputs import RunForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.ui.list_search import MAX_SEARCH_CHARS, search_rows
from runs.ui.list_state import LIST_STATE_HEADER
from runs.views.chat.access import get_own_conversation, get_usable_agent
from runs.views.chat.conversation import (
    build_chat_agent_context,
    build_next_turn_form,
    load_turns_state,
    render_conversation,
    render_new_conversation,
)
from runs.views.chat.conversation_list import build_list_context, query_chat_agents

MAX_AGENTS = 60
UNSEARCHED_AGENTS = 12
"""With more agents than these, the page has a search for them."""


@require_GET
def chat(request: HtmxRequest) -> HttpResponse:
    """Show the agents of the user beside the list of conversations.

    A user of a single agent gets its form instead.
    """
    context = build_list_context(request, agent=None, conversation=None)
    agents = query_chat_agents(request.user).order_by("name")
    names = ("groups", "search", "is_archive", "row_query")
    shows_list = any(context[name] for name in names)
    context |= {
        "view": 2 if "new" in request.GET or not shows_list else 1,  # on a phone
        **build_agent_choice(agents, request.GET.get("agent", "")),
    }
    page = "chat/chat.html"
    if context["agent_count"] == 1:
        agent = agents.get()
        page = "chat/new.html"
        context |= build_chat_agent_context(agent) | {"form": RunForm(agent)}
    return render_page_or_part(request, page, "chat/_list.html", context)


def build_agent_choice(agents: QuerySet[Agent], text: str) -> dict[str, Any]:
    """Return the agents to select from that have the words of `text`."""
    text = text.replace("\0", "").strip()[:MAX_SEARCH_CHARS]
    count = agents.count()
    found = search_rows(agents, text, "name", "description")
    return {
        "agent_count": count,
        "is_searchable": count > UNSEARCHED_AGENTS,
        "agent_search": text,
        "agents": found[:MAX_AGENTS],
        "omitted": max(0, found.count() - MAX_AGENTS),
    }


@require_GET
def chat_agent(request: HtmxRequest, slug: str) -> HttpResponse:
    agent = get_usable_agent(request.user, slug)
    return render_new_conversation(request, agent, RunForm(agent))


@require_GET
def chat_conversation(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    conversation = get_own_conversation(request.user, slug, pk)
    return render_conversation(
        request, conversation, build_next_turn_form(conversation)
    )


@require_GET
def chat_newer(request: HtmxRequest, slug: str, pk: int, after: int) -> HttpResponse:
    """Say how many messages are newer than the page, and whether its turns changed."""
    conversation = get_own_conversation(request.user, slug, pk)
    said = get_conversation_turns(conversation)
    state = load_turns_state(said, newest=after)
    is_changed = request.headers.get(LIST_STATE_HEADER, state) != state
    context = {
        "agent": conversation.agent,
        "conversation": conversation,
        "newest": after,
        "newer": said.filter(pk__gt=after).count(),
        "is_changed": is_changed,
        # Until the page has its turns anew, each poll finds them changed.
        "turns_state": "changed" if is_changed else state,
    }
    return render(request, "chat/_newer.html", context)
