"""How a run waits, without a thread, for a provider that is unavailable."""

import random
from typing import NoReturn

from django.db import transaction

from runs.engine.effects import ModelCallFailed
from runs.llm.errors import ModelCallError
from runs.models import Provider, ProviderOutage, Run
from runs.services.providers.outages import (
    OUTAGE_CODES,
    claim_probe,
    end_outages,
    find_open_outage,
    record_outage,
)
from runs.store.claims import ClaimedRun, worker_state
from runs.store.commits import increment_seq, persist, raise_if_canceled
from runs.store.database_clock import build_sql_time, db_time_from_now, site_clock
from runs.store.sanitizer import Sanitizer
from runs.store.transitions import transition
from tools.text.translatable import change_text, join_sentences, translatable

RESUME_LATER = translatable("Resume the run when it works again.")
"""Follows the sentence of a failure that may pass, if it ends the run."""
RECHECK_SECONDS = 600.0
"""Seconds after which a run wakes even if nothing has woken it."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 15.0, 300.0
"""Pauses of a run that waits for a rate limit."""


class RunSuspended(Exception):
    """The run was suspended; a person or an event wakes it."""


class ProviderWait:
    """Decides whether a run calls its provider, waits for it, or gives up."""

    def __init__(
        self, run: Run, claim: ClaimedRun, provider: Provider, sanitizer: Sanitizer
    ) -> None:
        self.run, self.claim, self.provider = run, claim, provider
        self.sanitizer = sanitizer
        self.model = ""
        """The model of the current call."""
        self.is_probe = False
        """Whether this run tests the provider for the others."""

    def before_call(self, model: str) -> ModelCallFailed | None:
        """Suspend the run during an outage, unless it is the one that tests.

        Return None if the call may be made, or why the run waits no longer.
        """
        self.model = model
        if not self.provider.outage_minutes or not self._may_have_outage():
            return None
        outage = self._find_outage()
        if outage is None:
            return None
        self.is_probe = claim_probe(outage, self.provider, self.run)
        if self.is_probe:
            return None
        if self._has_waited_enough():
            return self._give_up(outage.error_code, outage.error_message)
        return self._suspend_during_outage()

    def may_retry_now(self, failure: ModelCallError) -> bool:
        """Whether quick retries make sense: no outage is known of."""
        if failure.code == "rate_limit":
            return self.run.waiting_since is None
        if self.is_probe:
            return False
        is_common = failure.code in OUTAGE_CODES
        return not is_common or self._find_outage() is None

    def after_failure(self, failure: ModelCallError, elapsed: float) -> ModelCallFailed:
        """Suspend the run after its quick retries, or return why it fails."""
        is_rate_limit = failure.code == "rate_limit"
        is_outage = failure.code in OUTAGE_CODES or self.is_probe and not is_rate_limit
        if failure.may_retry and is_outage:
            return self._after_outage(failure, elapsed)
        self.after_response()
        if failure.may_retry and is_rate_limit:
            return self._after_rate_limit(failure, elapsed)
        return _build_failure(failure, elapsed)

    def after_response(self) -> None:
        """End the outage, if there is one: the model has responded."""
        self.is_probe = False
        if self._may_have_outage():
            end_outages(self.provider, self.model)

    def after_reply(self) -> None:
        """End the wait too; the commit of the reply does the same in the database."""
        self.after_response()
        self.run.waiting_provider_id = self.run.waiting_since = None
        self.run.waiting_for = ""

    def suspend(self, seconds: float) -> NoReturn:
        """Queue the run in `seconds`, when the server has asked for that."""
        persist(self.claim, lambda: self._write_wait(seconds))
        raise RunSuspended

    def _may_have_outage(self) -> bool:
        """Whether the database must be asked; for most calls it need not."""
        is_known = self.provider.pk in worker_state.unavailable_providers
        has_waited = self.run.waiting_provider_id is not None
        return is_known or has_waited

    def _after_outage(self, failure: ModelCallError, elapsed: float) -> ModelCallFailed:
        if not self.provider.outage_minutes:
            return _build_failure(failure, elapsed)
        if self._has_waited_enough():
            with transaction.atomic():
                self._record_outage(failure)
            return self._give_up(failure.code, str(failure), elapsed)
        return self._suspend_during_outage(failure)

    def _after_rate_limit(
        self, failure: ModelCallError, elapsed: float
    ) -> ModelCallFailed:
        left, asked = self._seconds_left(), failure.retry_after or 0.0
        if not self.provider.outage_minutes or asked > left:
            return _build_failure(failure, elapsed)
        if self._has_waited_enough():
            return self._give_up(failure.code, str(failure), elapsed)
        waited = self.provider.outage_minutes * 60 - left
        most = min(max(waited / 2, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        pause = max(most * random.uniform(0.5, 1.0), asked)  # noqa: S311  (jitter)
        persist(self.claim, lambda: self._write_wait(min(pause, left), is_long=True))
        raise RunSuspended

    def _suspend_during_outage(self, failure: ModelCallError | None = None) -> NoReturn:
        """Wait to be woken; with `failure`, the outage was just noticed or tested."""
        recheck = RECHECK_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  (jitter)
        seconds = min(recheck, self._seconds_left())

        def write() -> None:
            if failure is not None:
                self._record_outage(failure)
            # It may have ended while this run was on its way here.
            has_outage = self._find_outage() is not None
            self._write_wait(seconds if has_outage else 0.0, is_long=True)

        persist(self.claim, write)
        raise RunSuspended

    def _record_outage(self, failure: ModelCallError) -> None:
        message = change_text(str(failure), self.sanitizer.text)
        record_outage(
            self.provider, self.run, failure, message=message, model=self.model
        )

    def _find_outage(self) -> ProviderOutage | None:
        return find_open_outage(self.provider, self.model)

    def _write_wait(self, seconds: float, *, is_long: bool = False) -> None:
        """Suspend the run, in a transaction; `is_long` if no quick retry is left."""
        increment_seq(self.claim)
        raise_if_canceled(self.claim)
        since = self.run.waiting_since
        transition(
            self.run,
            to=Run.Status.WAITING,
            fence=self.claim.fence,
            available_at=build_sql_time(seconds),
            waiting_provider=self.provider.pk,
            waiting_since=build_sql_time() if is_long and since is None else since,
        )

    def _seconds_left(self) -> float:
        """Return the seconds until the run waits no longer."""
        seconds = self.provider.outage_minutes * 60
        if self.run.waiting_since is None:
            return seconds
        waited = (site_clock.now() - self.run.waiting_since).total_seconds()
        return max(seconds - waited, 1.0)

    def _has_waited_enough(self) -> bool:
        """Whether the wait is over, by the database's clock."""
        limit = db_time_from_now(-self.provider.outage_minutes * 60)
        return Run.objects.filter(pk=self.run.pk, waiting_since__lte=limit).exists()

    def _give_up(
        self, code: str, message: str, elapsed: float = 0.0
    ) -> ModelCallFailed:
        minutes = self.provider.outage_minutes
        slug = repr(self.provider.slug)
        waited = (
            translatable(
                "The run waited 1 minute for provider %(provider)s, which is still not "
                "available.",
                provider=slug,
            )
            if minutes == 1
            else translatable(
                "The run waited %(minutes)s minutes for provider %(provider)s, which "
                "is still not available.",
                minutes=f"{minutes:g}",
                provider=slug,
            )
        )
        sentences = [waited, message, RESUME_LATER]
        return ModelCallFailed(code, join_sentences(sentences), elapsed)


def _build_failure(failure: ModelCallError, elapsed: float) -> ModelCallFailed:
    """Return why the run fails, and what to do about it."""
    later = RESUME_LATER if failure.may_retry else ""
    message = join_sentences([str(failure), later])
    return ModelCallFailed(failure.code, message, elapsed)
