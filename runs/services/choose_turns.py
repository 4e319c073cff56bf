"""Which earlier turns of a conversation a new run shows its model."""

from runs.engine.transcript import tokens_in
from runs.engine.types import AgentSpec, Turn
from runs.models import Conversation, ProviderModel, Run
from runs.services.record import turn_of
from runs.services.turns_of_talk import turns_of_talk

MOST_TURNS = 50
MOST_TOKENS = 8_000
"""Estimated tokens of all earlier turns together."""


def choose_turns(spec: AgentSpec, conversation: Conversation) -> list[int]:
    """Return the ids of the newest turns that fit, oldest first.

    Runs that failed, were cancelled or have not ended are no turns.
    """
    status = [Run.Status.SUCCEEDED, Run.Status.STOPPED]
    turns = turns_of_talk(conversation).filter(status__in=status)
    runs = turns.order_by("-pk")[:MOST_TURNS]
    left, chosen = tokens_for_turns(spec), []
    for run in runs:
        left -= size_of(turn_of(run))
        if left < 0:
            break
        chosen.append(run.pk)
    return chosen[::-1]


def tokens_for_turns(spec: AgentSpec) -> int:
    """Return how many tokens earlier turns may take: at most half of the context."""
    card = ProviderModel.objects.filter(
        provider=spec.model.provider_id or 0, name=spec.model.model
    ).first()
    sizes = (spec.executor.context_tokens, card.context_tokens if card else None)
    return min([MOST_TOKENS, *(size // 2 for size in sizes if size)])


def size_of(turn: Turn) -> int:
    """Return about how many tokens a turn takes."""
    return sum(
        tokens_in((text or "").encode()) for text in (turn.question, turn.answer)
    )
