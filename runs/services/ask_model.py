"""Asking the model: attempts, drafts, waiting, and when to give up."""

import random
import time
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal

from runs.engine.digest import digest_of
from runs.engine.effects import CallModel, ModelOutOfTime, ModelRefused
from runs.engine.progress import cost_of as price_of
from runs.engine.types import Prices, Reply
from runs.llm.base import LLM
from runs.llm.errors import ModelFailed
from runs.llm.retry import wait_before
from runs.models import ModelAttempt, Run
from runs.services.clock import moment
from runs.services.commits import (
    Asked,
    commit_attempt,
    give_back,
    persist,
    raise_seq,
    refuse_if_cancelled,
)
from runs.services.held import Held
from runs.services.move import move
from runs.services.record import Failed, failed_attempts
from runs.services.redact import Choke
from runs.stream import DraftWriter
from tools.errors import CalledOff, DeadlinePassed
from tools.watch import Watch

LONGEST_CALL = 1800.0
"""Seconds one attempt may take, however lively it streams."""
LONGEST_SLEEP = 10.0
"""Seconds a run waits for a retry in its thread; for longer it is parked."""
GRACE = 15.0
"""Seconds past an operation's deadline until its thread counts as dead."""


class Parked(Exception):
    """The run was put aside; somebody or something wakes it."""


class Asker:
    """One run's line to its model."""

    def __init__(self, run: Run, held: Held, llm: LLM, choke: Choke) -> None:
        self.run, self.held, self.llm, self.choke = run, held, llm, choke
        self.is_first = run.fence > 1
        """Whether attempts of an earlier worker may be on record."""
        self.rng = random.Random(run.pk)  # noqa: S311  (jitter, no secret)

    def ask(
        self, effect: CallModel, *, number: int, prices: Prices | None
    ) -> Asked | ModelRefused | ModelOutOfTime:
        """Return the reply, or why there is none; failed attempts are committed."""
        request = effect.request
        before = failed_attempts(self.run, number) if self.is_first else Failed(0, 0, 0)
        self.is_first = False
        give_back()
        spent, tried, attempt = before.seconds, before.since_resume, before.number
        began = time.monotonic()
        while True:
            attempt, tried = attempt + 1, tried + 1
            elapsed = spent + time.monotonic() - began
            left = None if effect.seconds is None else effect.seconds - elapsed
            if left is not None and left <= 0:
                return ModelOutOfTime(elapsed)
            once = _Attempt(self, number, attempt, left)
            try:
                reply = once.make(effect)
            except CalledOff:
                self._keep_cut_off(once)
                self.held.check()
                raise
            except ModelFailed as failure:
                elapsed = spent + time.monotonic() - began
                wait = wait_before(tried + 1, failure, rng=self.rng)
                if wait is not None and left is not None and wait >= left:
                    wait = None
                self._keep_failure(once, failure, wait=wait)
                if wait is None:
                    return ModelRefused(failure.code, str(failure), elapsed)
                self._wait(wait)
                continue
            except DeadlinePassed:
                return ModelOutOfTime(spent + time.monotonic() - began)
            finally:
                self.held.deadline = None
            return Asked(
                effect=effect,
                number=number,
                reply=reply,
                digest=digest_of(request),
                started_at=once.started_at,
                elapsed=round(spent + time.monotonic() - began, 4),
                first_token=once.first_token,
                cost=cost_of(reply, prices),
            )

    def _keep_cut_off(self, once: "_Attempt") -> None:
        """Store that a person stopped the run during this attempt."""
        if self.held.ending != "cancelled":
            return
        commit_attempt(
            self.held,
            ModelAttempt(
                run=self.run,
                number=once.number,
                attempt=once.attempt,
                code="cancelled",
                message="A person stopped the run while the model was asked.",
                shown=once.first_token is not None,
                started_at=once.started_at,
                elapsed=time.monotonic() - once.began,
            ),
        )

    def _keep_failure(
        self, once: "_Attempt", failure: ModelFailed, *, wait: float | None
    ) -> None:
        commit_attempt(
            self.held,
            ModelAttempt(
                run=self.run,
                number=once.number,
                attempt=once.attempt,
                code=failure.code,
                message=self.choke.text(str(failure)),
                status=failure.status,
                shown=failure.shown,
                retry_in=wait,
                started_at=once.started_at,
                elapsed=time.monotonic() - once.began,
            ),
        )

    def _wait(self, seconds: float) -> None:
        """Wait here for a little, or hand the run back until it is time."""
        self.held.check()
        if seconds > LONGEST_SLEEP:
            persist(self.held, lambda: self._park(seconds))
            raise Parked
        give_back()
        try:
            Watch(flag=self.held.flag).sleep(seconds)
        except CalledOff:
            self.held.check()
            raise

    def _park(self, seconds: float) -> None:
        raise_seq(self.held)
        refuse_if_cancelled(self.held)
        due, fence = moment(seconds), self.held.fence
        move(self.run, to=Run.Status.WAITING, fence=fence, not_before=due)


class _Attempt:
    """One request on the wire."""

    def __init__(
        self, asker: Asker, number: int, attempt: int, left: float | None
    ) -> None:
        self.asker, self.number, self.attempt = asker, number, attempt
        self.is_last = left is not None and left <= LONGEST_CALL
        self.seconds = min(LONGEST_CALL, left if left is not None else LONGEST_CALL)
        self.started_at, self.began = datetime.now(UTC), time.monotonic()
        self.first_token: float | None = None

    def make(self, effect: CallModel) -> Reply:
        """Return the reply; raise `DeadlinePassed` only if the run's time is over."""
        held = self.asker.held
        held.deadline = self.began + self.seconds + GRACE
        draft = DraftWriter(
            held.run_id, fence=held.fence, number=self.number, attempt=self.attempt
        )

        shown = self.asker.choke.stream()

        def on_text(piece: str) -> None:
            if self.first_token is None:
                self.first_token = round(time.monotonic() - self.began, 4)
            draft.write(shown.feed(piece))

        watch = Watch(seconds=self.seconds, flag=held.flag)
        with closing(draft):
            try:
                stream = on_text if effect.request.settings.stream else None
                reply = self.asker.llm.ask(effect.request, watch=watch, on_text=stream)
            except DeadlinePassed as passed:
                if self.is_last:
                    raise
                raise ModelFailed("timeout", str(passed)) from None
        return self.asker.choke.reply(reply)


def cost_of(reply: Reply, prices: Prices | None) -> Decimal:
    """Return what a reply cost by the price table; 0 where there is no price."""
    if prices is None or reply.usage is None:
        return Decimal(0)
    return Decimal(f"{price_of(reply.usage, prices):.6f}")
