"""The runs of a conversation, those before the place where it branched off included."""

from django.db.models import Q, QuerySet

from runs.models import Conversation, Run

DEEPEST = 30
"""Branches of branches that are followed."""


def turns_of_talk(talk: Conversation) -> QuerySet[Run]:
    """Return its runs, in no order; of another person's branches nothing."""
    found, before = Q(conversation=talk), None
    one: Conversation | None = talk
    for _ in range(DEEPEST):
        if one is None or one.branch_at is None or one.branch_of is None:
            break
        before = min(before or one.branch_at, one.branch_at)
        one = one.branch_of
        found |= Q(conversation=one, pk__lt=before)
    return Run.objects.filter(found, owner=talk.owner_id)
