"""The exact prompt of a model call, rebuilt from the spec and the earlier steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from runs.engine.digest import digest_request
from runs.engine.effects import CallModel
from runs.engine.types import Message, ModelRequest
from runs.models import ModelCall, Run
from runs.services.runs.replay import replay_history
from runs.store.history import load_history, load_history_before


@dataclass(frozen=True)
class RebuiltPrompt:
    """The request of a model call."""

    request: ModelRequest
    matches_digest: bool
    """Whether it is proven to be exactly what was sent."""
    known_messages: int = 0
    """How many of its first messages the previous call had sent already."""


def rebuild_prompt(call: ModelCall) -> RebuiltPrompt | None:
    """Return what `call` sent; None if the records no longer lead to it."""
    calls = _LastCalls()
    effect = replay_history(call.run, load_history_before(call), passed=calls.remember)
    if not isinstance(effect, CallModel) or effect.at_index != call.at_index:
        return None
    return RebuiltPrompt(
        effect.request,
        matches_digest=digest_request(effect.request) == call.digest,
        known_messages=calls.count_messages_shared_with(effect),
    )


def rebuild_next_prompt(run: Run) -> RebuiltPrompt | None:
    """Return what the call without a reply sends, or would have sent.

    There is no digest of it yet, so it is never proven.
    """
    if run.is_imported:
        return None
    calls = _LastCalls()
    effect = replay_history(run, load_history(run), passed=calls.remember)
    if not isinstance(effect, CallModel):
        return None
    known = calls.count_messages_shared_with(effect)
    return RebuiltPrompt(effect.request, matches_digest=False, known_messages=known)


class _LastCalls:
    """The last model call of each purpose during a replay."""

    def __init__(self) -> None:
        self._last: dict[str, CallModel] = {}

    def remember(self, effect: CallModel) -> None:
        self._last[effect.purpose] = effect

    def count_messages_shared_with(self, effect: CallModel) -> int:
        """Return how many first messages the previous call of its purpose shares."""
        previous = self._last.get(effect.purpose)
        if previous is None:
            return 0
        return count_shared_messages(effect.request.messages, previous.request.messages)


def count_shared_messages(
    messages: Sequence[Message], previous: Sequence[Message]
) -> int:
    """Return how many messages are the same, counted from the first."""
    pairs = zip(messages, previous, strict=False)
    same = (one is other or one.canonical == other.canonical for one, other in pairs)
    return sum(takewhile(bool, same))
