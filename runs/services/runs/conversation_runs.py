"""The runs of a conversation, including those before it branched off."""

from django.db.models import Q, QuerySet

from runs.models import Conversation, Run

MAX_BRANCH_DEPTH = 30
"""Levels of branches that are followed."""


def get_conversation_turns(conversation: Conversation) -> QuerySet[Run]:
    """Return its runs, unordered, without branches of other users."""
    found, before = Q(conversation=conversation), None
    one: Conversation | None = conversation
    for _ in range(MAX_BRANCH_DEPTH):
        if one is None or one.branch_at is None or one.branch_of is None:
            break
        before = min(before or one.branch_at, one.branch_at)
        one = one.branch_of
        found |= Q(conversation=one, pk__lt=before)
    return Run.objects.filter(found, owner=conversation.owner_id)
