"""The runs of a conversation, including those before it branched off."""

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from runs.models import Conversation, Run
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import AnswerUnfinished, NotAllowed

MAX_BRANCH_DEPTH = 30
"""Levels of branches that are followed."""


def get_conversation_turns(conversation: Conversation) -> QuerySet[Run]:
    """Return its runs, unordered, without branches of other users."""
    found, before = Q(conversation=conversation), None
    one: Conversation | None = conversation
    for _level in range(MAX_BRANCH_DEPTH):
        if one is None or one.branch_at is None or one.branch_of is None:
            break
        before = min(before or one.branch_at, one.branch_at)
        one = one.branch_of
        found |= Q(conversation=one, pk__lt=before)
    return Run.objects.filter(found, owner=conversation.owner_id)


def require_active_conversation(conversation: Conversation) -> None:
    """Raise `NotAllowed` if the conversation is archived."""
    if conversation.archived_at is not None:
        raise NotAllowed(_("This conversation is archived. Unarchive it first."))


def require_finished_answers(conversation: Conversation) -> None:
    """Raise `AnswerUnfinished` if a run of `conversation` has not ended.

    The next run would not see its answer. Locks the conversation until the end of the
    transaction, so that of two messages at the same moment one is refused. Raises
    `NotAllowed` if it is archived.
    """
    require_active_conversation(conversation)
    Conversation.objects.select_for_update(no_key=True, of=("self",)).get(
        pk=conversation.pk
    )
    runs = get_conversation_turns(conversation).exclude(status__in=FINISHED_STATUSES)
    if (status := runs.values_list("status", flat=True).first()) is not None:
        raise AnswerUnfinished(describe_unfinished_answer(status))


def describe_unfinished_answer(status: str) -> str:
    """Return why the next message must wait, and what to do."""
    match status:
        case Run.Status.AWAITING_APPROVAL:
            return _(
                "The previous answer awaits an approval. Approve or reject the call, "
                "or stop the answer, then send your message."
            )
        case Run.Status.AWAITING_DECISION:
            return _(
                "A call of the previous answer has an unknown outcome. Decide how to "
                "continue, or stop the answer, then send your message."
            )
        case Run.Status.WAITING:
            return _(
                "The previous answer is waiting to continue. Wait until it is "
                "complete, or stop it, then send your message."
            )
        case _:
            return _(
                "The previous answer is still being written. Wait until it is "
                "complete, or stop it, then send your message."
            )
