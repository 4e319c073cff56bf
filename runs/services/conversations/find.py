"""Find the conversation that a client continues which only sends its messages."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from runs.engine.types import HistoryTurn
from runs.models import Agent, Conversation, Run
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.start import EarlierTurn, build_run_title
from runs.store.history import build_turns

MAX_RUNS = 200
"""Newest runs of the user and agent among which the last turn is looked for."""
MAX_CANDIDATES = 5
PARAGRAPH = "\n\n"
"""Ends each text that is streamed before the answer."""


def find_continued_conversation(
    agent: Agent, turns: Sequence[EarlierTurn], *, owner: User
) -> Conversation | None:
    """Return the owner's newest conversation with the agent that has these turns."""
    last = turns[-1]
    if last.question is None or last.answer is None:
        return None
    newest = Run.objects.filter(owner=owner, agent=agent).order_by("-pk")[:MAX_RUNS]
    runs = Run.objects.filter(
        pk__in=list(newest.values_list("pk", flat=True)),
        status=Run.Status.SUCCEEDED,
        title=build_run_title({"input": last.question}),
        conversation__isnull=False,
        conversation__is_test=False,
        conversation__archived_at=None,
    ).select_related("conversation__branch_of")
    for run in runs.order_by("-pk")[:MAX_CANDIDATES]:
        assert run.conversation is not None
        stored = _list_turns(run.conversation, most=len(turns))
        if len(stored) == len(turns) and all(map(_is_same_turn, stored, turns)):
            return run.conversation
    return None


def _is_same_turn(stored: EarlierTurn, sent: EarlierTurn) -> bool:
    """Whether a client sends this turn.

    A streamed answer follows remarks before calls of tools and links to approvals, and
    chat programs send all of that back, without spaces at the ends.
    """
    if (stored.question or "").strip() != (sent.question or "").strip():
        return False
    if stored.answer is None or sent.answer is None:
        return stored.answer == sent.answer
    answer, streamed = stored.answer.strip(), sent.answer.strip()
    if not answer:
        return not streamed
    return streamed == answer or streamed.endswith(PARAGRAPH + answer)


def _list_turns(conversation: Conversation, *, most: int) -> list[EarlierTurn]:
    """Return the newest turns of a conversation, oldest first; one more than `most`."""
    runs = get_conversation_turns(conversation).order_by("-pk")[: most + 1]
    return [_build_given(turn) for run in reversed(runs) for turn in build_turns(run)]


def _build_given(turn: HistoryTurn) -> EarlierTurn:
    return EarlierTurn(turn.question, turn.answer)
