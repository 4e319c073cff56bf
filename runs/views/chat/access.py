"""Agents and conversations that a user may open in the chat; 404 otherwise."""

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from runs.models import Agent, Conversation


def get_usable_agent(user: User, slug: str) -> Agent:
    """Return an agent with which the user may begin a conversation."""
    return get_object_or_404(Agent.objects.usable_by(user), slug=slug)


def get_own_conversation(user: User, slug: str, pk: int) -> Conversation:
    """Return a conversation of the user, with its agent, which may be archived."""
    agents = Agent.objects.visible_to(user).filter(slug=slug, is_playground=False)
    rows = Conversation.objects.select_related("agent", "branch_of")
    return get_object_or_404(rows, pk=pk, owner=user, agent__in=agents, is_test=False)
