"""Call the model: attempts, streamed drafts, retries and when to give up."""

import random
import time
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

from runs.engine.digest import digest_request
from runs.engine.effects import CallModel, ModelCallFailed, ModelCallTimedOut
from runs.engine.progress import compute_usage_cost as price_of
from runs.engine.types import Prices, Reply
from runs.llm.base import LLM
from runs.llm.errors import ModelCallError
from runs.llm.retry import compute_retry_delay
from runs.models import ModelAttempt, Run
from runs.redis_streams import MAX_DELTA_CHARACTERS, TextDeltaWriter
from runs.services.providers.mask_address import mask_provider_address, may_see_provider
from runs.services.providers.run_provider import ProviderConnection
from runs.store.claims import ClaimedRun, worker_state
from runs.store.commits import ModelReply, commit_attempt, release_connection
from runs.store.database_clock import site_clock
from runs.store.history import FailedAttempts, count_failed_attempts
from runs.store.metric_counters import (
    FIRST_TOKEN_SECONDS,
    MODEL_CALL_FAILURES,
    MODEL_CALL_SECONDS,
    MODEL_COST,
    MODEL_TOKENS,
)
from runs.store.sanitizer import Sanitizer
from runs.store.trace_ids import build_call_traceparent
from runs.worker.provider_rate import ProviderRate
from runs.worker.provider_wait import ProviderWait
from tools.errors import CallCanceled, DeadlineExceeded
from tools.net.deadline import Deadline
from tools.net.trace_context import send_traceparent
from tools.text.translatable import change_text

MAX_CALL_SECONDS = 1800.0
"""Maximum seconds of one attempt, even if it is still streaming."""
MAX_SLEEP_SECONDS = 10.0
"""Maximum seconds to wait in the thread for a retry; longer waits are queued."""
CANCELED = ("canceled", "A person canceled the run during this model call.")
OUT_OF_TIME = ("time_limit", "The time limit of the run ended this model call.")
"""Error codes and messages of attempts that were interrupted."""
THREAD_GRACE_SECONDS = 15.0
"""Seconds after an operation's deadline until its thread counts as dead."""


class ModelCaller:
    """One run's connection to its model."""

    def __init__(
        self,
        run: Run,
        claim: ClaimedRun,
        opened: ProviderConnection,
        sanitizer: Sanitizer,
    ) -> None:
        self.run, self.claim, self.sanitizer = run, claim, sanitizer
        self.llm: LLM = opened.llm
        self.provider = opened.provider
        self.error_sanitizer = Sanitizer(opened.secrets)
        self.provider_wait = ProviderWait(
            run, claim, opened.provider, self.error_sanitizer
        )
        self.provider_rate = ProviderRate(run, claim, opened.provider)
        self.may_have_earlier_attempts = run.fence > 1
        """Whether attempts of an earlier worker may be recorded."""
        self.rng = random.Random(run.pk)  # noqa: S311  (jitter, no secret)

    def call(
        self, effect: CallModel, *, number: int, prices: Prices | None
    ) -> ModelReply | ModelCallFailed | ModelCallTimedOut:
        """Return the reply, or why there is none; failed attempts are committed."""
        outcome = self._call(effect, number=number, prices=prices)
        if isinstance(outcome, ModelCallFailed):
            return replace(outcome, message=self._mask_message(outcome.message))
        return outcome

    def _mask_message(self, message: str) -> str:
        """Return an error without secrets, and without an address of a stranger's."""
        if not may_see_provider(self.run, self.provider):
            message = mask_provider_address(message, self.provider)
        return change_text(message, self.error_sanitizer.text)

    def _call(
        self, effect: CallModel, *, number: int, prices: Prices | None
    ) -> ModelReply | ModelCallFailed | ModelCallTimedOut:
        request, model = effect.request, effect.request.settings.model
        before = (
            count_failed_attempts(self.run, number)
            if self.may_have_earlier_attempts
            else FailedAttempts(0, 0, 0)
        )
        self.may_have_earlier_attempts = False
        if (failed := self.provider_wait.before_call(model)) is not None:
            return failed
        self.provider_rate.wait_for_turn(effect)
        release_connection()
        spent, tried, attempt = before.seconds, before.since_wait, before.number
        began = time.monotonic()
        while True:
            attempt, tried = attempt + 1, tried + 1
            elapsed = spent + time.monotonic() - began
            left = None if effect.seconds is None else effect.seconds - elapsed
            if left is not None and left <= 0:
                return ModelCallTimedOut(elapsed)
            once = _Attempt(self, number, attempt, left)
            try:
                reply = once.send(effect)
            except CallCanceled:
                if self.claim.end_reason == "canceled":
                    self._record_interrupted_attempt(once, *CANCELED)
                self.claim.raise_if_ended()
                raise
            except ModelCallError as failure:
                elapsed = spent + time.monotonic() - began
                wait = compute_retry_delay(tried + 1, failure, rng=self.rng)
                if wait is not None and not self.provider_wait.may_retry_now(failure):
                    wait = None
                self._record_failed_attempt(once, failure, wait=wait)
                if wait is None:
                    return self.provider_wait.after_failure(failure, elapsed)
                self._wait_to_retry(wait, left)
                self.provider_rate.count_retry()
                continue
            except DeadlineExceeded:
                self._record_interrupted_attempt(once, *OUT_OF_TIME)
                return ModelCallTimedOut(spent + time.monotonic() - began)
            finally:
                self.claim.deadline = None
            self.provider_wait.after_reply()
            self.provider_rate.settle(reply.usage)
            cost = compute_reply_cost(reply, prices)
            self._count_reply(once, reply, cost)
            return ModelReply(
                effect=effect,
                number=number,
                reply=reply,
                digest=digest_request(request),
                started_at=once.started_at,
                elapsed=round(spent + time.monotonic() - began, 4),
                first_token=once.first_token,
                cost=cost,
            )

    def _count_reply(self, once: "_Attempt", reply: Reply, cost: Decimal) -> None:
        which = {"provider": self.provider.slug, "model": once.model}
        MODEL_CALL_SECONDS.observe(time.monotonic() - once.began, **which)
        if once.first_token is not None:
            FIRST_TOKEN_SECONDS.observe(once.first_token, **which)
        MODEL_COST.add(float(cost), **which)
        if reply.usage is not None:
            MODEL_TOKENS.add(reply.usage.input_tokens, **which, direction="input")
            MODEL_TOKENS.add(reply.usage.output_tokens, **which, direction="output")

    def _record_interrupted_attempt(
        self, once: "_Attempt", code: str, message: str
    ) -> None:
        """Record an attempt that ended with its run, and what it had written."""
        commit_attempt(
            self.claim,
            ModelAttempt(
                run=self.run,
                number=once.number,
                attempt=once.attempt,
                code=code,
                message=message,
                was_streamed=once.first_token is not None,
                partial_text=once.shown_text,
                started_at=once.started_at,
                elapsed=time.monotonic() - once.began,
            ),
        )

    def _record_failed_attempt(
        self, once: "_Attempt", failure: ModelCallError, *, wait: float | None
    ) -> None:
        MODEL_CALL_FAILURES.add(provider=self.provider.slug, code=failure.code)
        commit_attempt(
            self.claim,
            ModelAttempt(
                run=self.run,
                number=once.number,
                attempt=once.attempt,
                code=failure.code,
                message=self._mask_message(str(failure)),
                status=failure.status,
                was_streamed=failure.has_streamed,
                partial_text="" if wait is not None else once.shown_text,
                retry_in=wait,
                started_at=once.started_at,
                elapsed=time.monotonic() - once.began,
            ),
        )

    def _wait_to_retry(self, seconds: float, left: float | None) -> None:
        """Wait here for a short time, or requeue the run until it is due.

        A wait without a thread is not working time, of which the run has `left`.
        """
        self.claim.raise_if_ended()
        if seconds > MAX_SLEEP_SECONDS or left is not None and seconds >= left:
            self.provider_wait.suspend(seconds)
        release_connection()
        try:
            Deadline(flag=self.claim.flag).sleep(seconds)
        except CallCanceled:
            self.claim.raise_if_ended()
            raise


class _Attempt:
    """One request on the wire."""

    def __init__(
        self, model_caller: ModelCaller, number: int, attempt: int, left: float | None
    ) -> None:
        self.model_caller, self.number, self.attempt = model_caller, number, attempt
        self.is_last = left is not None and left <= MAX_CALL_SECONDS
        self.seconds = min(
            MAX_CALL_SECONDS, left if left is not None else MAX_CALL_SECONDS
        )
        self.started_at, self.began = site_clock.now(), time.monotonic()
        self.first_token: float | None = None
        self.model = ""
        self._shown: list[str] = []

    @property
    def shown_text(self) -> str:
        """What was streamed, as far as drafts show it."""
        return "".join(self._shown)[:MAX_DELTA_CHARACTERS]

    def send(self, effect: CallModel) -> Reply:
        """Return the reply; raise `DeadlineExceeded` only if the run's time is over."""
        claim, self.model = self.model_caller.claim, effect.request.settings.model
        claim.deadline = self.began + self.seconds + THREAD_GRACE_SECONDS
        draft = TextDeltaWriter(
            claim.run_id, fence=claim.fence, number=self.number, attempt=self.attempt
        )

        shown = self.model_caller.sanitizer.stream()

        def on_text(piece: str) -> None:
            if self.first_token is None:
                self.first_token = round(time.monotonic() - self.began, 4)
                self.model_caller.provider_wait.after_response()
                release_connection()
            if effect.purpose == "summary":  # not part of the answer
                return
            safe = shown.feed(piece)
            self._shown.append(safe)
            draft.write(safe)

        deadline = Deadline(seconds=self.seconds, flag=claim.flag)
        with closing(draft):
            try:
                stream = on_text if effect.request.settings.stream else None
                parent = build_call_traceparent(
                    self.model_caller.run, self.number, attempt=self.attempt
                )
                with worker_state.waiting_for_model(), send_traceparent(parent):
                    reply = self.model_caller.llm.complete(
                        effect.request, deadline=deadline, on_text=stream
                    )
            except DeadlineExceeded as passed:
                if self.is_last:
                    raise
                raise ModelCallError("timeout", str(passed)) from None
        return self.model_caller.sanitizer.reply(reply)


def compute_reply_cost(reply: Reply, prices: Prices | None) -> Decimal:
    """Return the cost of a reply by the price table; 0 without a price."""
    if prices is None or reply.usage is None:
        return Decimal(0)
    return Decimal(f"{price_of(reply.usage, prices):.6f}")
