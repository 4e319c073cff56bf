"""The exact prompt of a model call, rebuilt from the spec and the earlier steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from runs.engine.digest import digest_of
from runs.engine.effects import CallModel
from runs.engine.types import Message, ModelRequest
from runs.models import ModelCall, Run
from runs.services.kept_rounds import keep_rounds, take_rounds
from runs.services.record import read_record, record_before
from runs.services.replay import replay
from runs.services.retell import Retold, retell


@dataclass(frozen=True)
class RebuiltPrompt:
    """What a model call sent, and whether the stored digest agrees."""

    request: ModelRequest
    agrees: bool
    known: int = 0
    """How many of its messages the call before had sent already."""


def rebuild_prompt(call: ModelCall) -> RebuiltPrompt | None:
    """Return what `call` sent; None where the record does not lead there any more.

    Told from the rows of its rounds, it is shown where the digest proves it; only where
    that differs is everything decided anew.
    """
    return _retold(call) or _replayed(call)


def _retold(call: ModelCall) -> RebuiltPrompt | None:
    told = _told(call)
    if told is None:
        return None
    messages = told.request.messages
    size = sum(len(message.canonical) for message in messages)
    keep_rounds(call, told.rounds, size=size)
    known = shared(messages, told.before.messages if told.before else ())
    return RebuiltPrompt(told.request, agrees=True, known=known)


def _told(call: ModelCall) -> Retold | None:
    """Return what the digest proves, of kept rounds or of those read anew."""
    kept = take_rounds(call)
    for rounds in (kept, None) if kept else (None,):
        told = retell(call, kept=rounds)
        if told is not None and digest_of(told.request) == call.digest:
            return told
    return None


def _replayed(call: ModelCall) -> RebuiltPrompt | None:
    asked = _Asked()
    effect = replay(call.run, record_before(call), passed=asked.keep)
    if not isinstance(effect, CallModel) or effect.at_index != call.at_index:
        return None
    request = effect.request
    agrees = digest_of(request) == call.digest
    return RebuiltPrompt(request, agrees, known=asked.shared_with(effect))


def prompt_of_next(run: Run) -> RebuiltPrompt | None:
    """Return what the call sends, or would have sent, that has no reply yet.

    No digest of it is stored, so nothing says that it was exactly this.
    """
    asked = _Asked()
    effect = replay(run, read_record(run), passed=asked.keep)
    if not isinstance(effect, CallModel):
        return None
    known = asked.shared_with(effect)
    return RebuiltPrompt(effect.request, agrees=False, known=known)


class _Asked:
    """The last model call of each purpose, on the way to one."""

    def __init__(self) -> None:
        self._last: dict[str, CallModel] = {}

    def keep(self, effect: CallModel) -> None:
        self._last[effect.purpose] = effect

    def shared_with(self, effect: CallModel) -> int:
        """Return how many messages the one before had in common, from the first."""
        before = self._last.get(effect.purpose)
        if before is None:
            return 0
        return shared(effect.request.messages, before.request.messages)


def shared(messages: Sequence[Message], before: Sequence[Message]) -> int:
    """Return how many messages are the same, from the first."""
    pairs = zip(messages, before, strict=False)
    same = (one is other or one.canonical == other.canonical for one, other in pairs)
    return sum(takewhile(bool, same))
