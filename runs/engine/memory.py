"""Earlier turns of a conversation, as the model is shown them."""

from collections.abc import Sequence

from runs.engine.types import Message, Turn

NO_ANSWER = "(There was no answer to this: the run was stopped.)"


def history_messages(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return earlier turns as chat messages."""
    return tuple(message for turn in turns for message in _pair(turn))


def history_text(turns: Sequence[Turn]) -> str:
    """Return earlier turns as lines, for `{chat_history}`."""
    return "\n".join(f"Human: {turn.question}\nAI: {_answer(turn)}" for turn in turns)


def _pair(turn: Turn) -> tuple[Message, Message]:
    return (
        Message.of("user", turn.question),
        Message.of("assistant", _answer(turn)),
    )


def _answer(turn: Turn) -> str:
    return NO_ANSWER if turn.answer is None else turn.answer
