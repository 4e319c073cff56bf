"""Earlier turns of a conversation, as shown to the model."""

from collections.abc import Iterator, Sequence

from runs.engine.types import HistoryTurn, Message

NO_ANSWER = "(There was no answer to this: the run was stopped.)"


def history_messages(turns: Sequence[HistoryTurn]) -> tuple[Message, ...]:
    """Return earlier turns as chat messages."""
    return tuple(message for turn in turns for message in _turn_messages(turn))


def history_text(turns: Sequence[HistoryTurn]) -> str:
    """Return earlier turns as lines, for `{chat_history}`."""
    return "\n".join(line for turn in turns for line in _turn_lines(turn))


def _turn_messages(turn: HistoryTurn) -> Iterator[Message]:
    if turn.question is not None:
        yield Message.from_text("user", turn.question)
    if not turn.is_note:
        yield Message.from_text("assistant", _answer_text(turn))


def _turn_lines(turn: HistoryTurn) -> Iterator[str]:
    if turn.question is not None:
        yield f"Human: {turn.question}"
    if not turn.is_note:
        yield f"AI: {_answer_text(turn)}"


def _answer_text(turn: HistoryTurn) -> str:
    return NO_ANSWER if turn.answer is None else turn.answer
