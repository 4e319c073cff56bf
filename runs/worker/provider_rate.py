"""How a run takes its turn at a provider that allows so much per minute.

A short wait is slept in the run's thread. A long one needs none: the turn is reserved,
and the run is queued when it comes.
"""

from runs.engine.effects import CallModel
from runs.engine.types import Usage
from runs.models import Provider, Run
from runs.services.providers.rate import RATES, ProviderShare
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
from tools.errors import CallCanceled
from tools.net.deadline import Deadline

MAX_SLEEP_SECONDS = 10.0
"""Maximum seconds to wait in the thread; longer waits are queued."""


class ProviderRate:
    """The share of one run in what its provider allows per minute."""

    def __init__(self, run: Run, claim: ClaimedRun, provider: Provider) -> None:
        self.run, self.claim, self.provider = run, claim, provider
        self.share = ProviderShare(provider)

    def wait_for_turn(self, effect: CallModel) -> None:
        """Take one request and its expected tokens; return when it may be sent.

        Raises `RunSuspended` for a wait of more than ten seconds.
        """
        if not self.share.rates:
            return
        self.share.expect(effect.request)
        if self.run.waiting_for in RATES:  # it has waited for the turn it reserved
            self.run.waiting_for = ""
            return
        seconds, kind = self.share.reserve()
        if seconds > MAX_SLEEP_SECONDS:
            persist(self.claim, lambda: self._write_wait(seconds, kind))
            raise RunSuspended
        if seconds:
            self._sleep(seconds)

    def count_retry(self) -> None:
        """Take another request, which is sent at once: the next calls wait for it."""
        self.share.count_retry()

    def settle(self, usage: Usage | None) -> None:
        """Give back or take the tokens by which the reply differs from the estimate."""
        self.share.settle(usage)

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
