"""Requests and tokens per minute of a provider, shared by the runs of all workers.

A short wait is slept in the run's thread. A long one needs none: the turn is reserved,
and the run is queued when it comes.
"""

from typing import NamedTuple

from runs.engine.effects import CallModel
from runs.engine.progress import estimate_usage
from runs.engine.types import Usage
from runs.models import Provider, Run
from runs.services.health.queue import count_live_workers
from runs.store.claims import ClaimedRun
from runs.store.commits import (
    increment_seq,
    persist,
    raise_if_canceled,
    release_connection,
)
from runs.store.database_clock import build_sql_time
from runs.store.transitions import transition
from runs.worker.provider_wait import RunSuspended
from runs.worker.token_bucket import BucketUse, SharedBuckets
from tools.errors import CallCanceled
from tools.net.deadline import Deadline

MAX_SLEEP_SECONDS = 10.0
"""Maximum seconds to wait in the thread; longer waits are queued."""
EXPECTED_OUTPUT_TOKENS = 500
"""Tokens of a reply, until it says how many it has."""
RATES = (Run.Limit.REQUESTS, Run.Limit.TOKENS)


buckets = SharedBuckets(count_live_workers)


class _Rate(NamedTuple):
    kind: Run.Limit
    per_minute: int


class ProviderRate:
    """The share of one run in what its provider allows per minute."""

    def __init__(self, run: Run, claim: ClaimedRun, provider: Provider) -> None:
        self.run, self.claim, self.provider = run, claim, provider
        limits = (provider.requests_per_minute, provider.tokens_per_minute)
        self.rates = [
            _Rate(kind, limit)
            for kind, limit in zip(RATES, limits, strict=True)
            if limit is not None
        ]
        self.expected_tokens = 0
        """Tokens taken for the current call."""

    def wait_for_turn(self, effect: CallModel) -> None:
        """Take one request and its expected tokens; return when it may be sent.

        Raises `RunSuspended` for a wait of more than ten seconds.
        """
        if not self.rates:
            return
        self.expected_tokens = self._estimate_tokens(effect)
        if self.run.waiting_for in RATES:  # it has waited for the turn it reserved
            self.run.waiting_for = ""
            return
        waits = self._take(requests=1, tokens=self.expected_tokens)
        seconds, kind = max(zip(waits, (rate.kind for rate in self.rates), strict=True))
        if seconds > MAX_SLEEP_SECONDS:
            persist(self.claim, lambda: self._write_wait(seconds, kind))
            raise RunSuspended
        if seconds:
            self._sleep(seconds)

    def count_retry(self) -> None:
        """Take another request, which is sent at once: the next calls wait for it."""
        if self.rates:
            self._take(requests=1, tokens=self.expected_tokens)

    def settle(self, usage: Usage | None) -> None:
        """Give back or take the tokens by which the reply differs from the estimate."""
        if self.rates and usage is not None:
            used = usage.input_tokens + usage.output_tokens
            self._take(requests=0, tokens=used - self.expected_tokens)

    def _take(self, *, requests: int, tokens: int) -> list[float]:
        amounts = {Run.Limit.REQUESTS: requests, Run.Limit.TOKENS: tokens}
        return buckets.take(
            [
                BucketUse(f"rate:{self.provider.pk}:{kind}", limit, amounts[kind])
                for kind, limit in self.rates
            ]
        )

    def _estimate_tokens(self, effect: CallModel) -> int:
        sent = estimate_usage(effect, "").input_tokens
        asked = effect.request.settings.parameters.get("max_tokens")
        most = asked if isinstance(asked, int) else EXPECTED_OUTPUT_TOKENS
        return sent + min(most, EXPECTED_OUTPUT_TOKENS)

    def _sleep(self, seconds: float) -> None:
        release_connection()
        try:
            Deadline(flag=self.claim.flag).sleep(seconds)
        except CallCanceled:
            self.claim.raise_if_ended()
            raise

    def _write_wait(self, seconds: float, kind: Run.Limit) -> None:
        increment_seq(self.claim)
        raise_if_canceled(self.claim)
        transition(
            self.run,
            to=Run.Status.WAITING,
            fence=self.claim.fence,
            available_at=build_sql_time(seconds),
            waiting_for=kind,
            waiting_provider=self.provider.pk,
        )
