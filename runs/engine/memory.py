"""Earlier turns of a conversation, as shown to the model."""

from collections.abc import Sequence

from runs.engine.types import HistoryTurn, Message

NO_ANSWER = "(There was no answer to this: the run was stopped.)"


def history_messages(turns: Sequence[HistoryTurn]) -> tuple[Message, ...]:
    """Return earlier turns as chat messages."""
    return tuple(message for turn in turns for message in _turn_messages(turn))


def history_text(turns: Sequence[HistoryTurn]) -> str:
    """Return earlier turns as lines, for `{chat_history}`."""
    return "\n".join(
        f"Human: {turn.question}\nAI: {_answer_text(turn)}" for turn in turns
    )


def _turn_messages(turn: HistoryTurn) -> tuple[Message, Message]:
    return (
        Message.from_text("user", turn.question),
        Message.from_text("assistant", _answer_text(turn)),
    )


def _answer_text(turn: HistoryTurn) -> str:
    return NO_ANSWER if turn.answer is None else turn.answer
