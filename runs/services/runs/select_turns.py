"""Select the earlier turns of a conversation that a run shows its model."""

from runs.engine.transcript import estimate_tokens
from runs.engine.types import AgentSpec, HistoryTurn
from runs.models import Conversation, ProviderModel, Run
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.store.history import build_turns, load_stopped_answers

MAX_CONTEXT_TURNS = 50
MAX_TURN_TOKENS = 8_000
"""Maximum estimated tokens of all earlier turns."""


def select_turns(spec: AgentSpec, conversation: Conversation) -> list[int]:
    """Return the ids of the newest turns that fit, oldest first.

    Runs that failed or have not ended are skipped, and canceled ones of whose answer
    nothing was written.
    """
    status = [Run.Status.SUCCEEDED, Run.Status.LIMIT_REACHED, Run.Status.CANCELED]
    turns = get_conversation_turns(conversation).filter(status__in=status)
    runs = list(turns.order_by("-pk")[:MAX_CONTEXT_TURNS])
    written = load_stopped_answers(runs)
    left, chosen = get_turn_token_budget(spec), []
    for run in runs:
        if run.status == Run.Status.CANCELED and run.pk not in written:
            continue
        turns_of_run = build_turns(run, written=written.get(run.pk))
        left -= sum(estimate_turn_tokens(turn) for turn in turns_of_run)
        if left < 0:
            break
        chosen.append(run.pk)
    return chosen[::-1]


def get_turn_token_budget(spec: AgentSpec) -> int:
    """Return the maximum tokens of earlier turns: at most half of the context."""
    card = ProviderModel.objects.filter(
        provider=spec.model.provider_id or 0, name=spec.model.model
    ).first()
    sizes = (spec.executor.context_tokens, card.context_tokens if card else None)
    return min([MAX_TURN_TOKENS, *(size // 2 for size in sizes if size)])


def estimate_turn_tokens(turn: HistoryTurn) -> int:
    return sum(
        estimate_tokens((text or "").encode()) for text in (turn.question, turn.answer)
    )
