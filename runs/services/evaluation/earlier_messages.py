"""The earlier messages of a conversation, for those who judge an answer in it."""

from collections.abc import Iterable, Iterator, Sequence

from runs.engine.types import HistoryTurn
from runs.evaluation.types import RecordedMessage
from runs.models import Run
from runs.store.history import load_earlier_turns_of


def load_earlier_messages(runs: Sequence[Run]) -> dict[int, list[RecordedMessage]]:
    """Return what the model saw of the conversation by run, oldest first."""
    turns = load_earlier_turns_of(runs)
    return {run.pk: list(list_messages(turns[run.pk])) for run in runs}


def list_messages(turns: Iterable[HistoryTurn]) -> Iterator[RecordedMessage]:
    for turn in turns:
        if turn.question is not None:
            yield RecordedMessage(role="user", text=turn.question)
        if turn.answer is not None:
            yield RecordedMessage(role="assistant", text=turn.answer)
