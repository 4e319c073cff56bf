"""Execute a run: drive the engine from the history, then with real calls."""

import logging
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, assert_never

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from structlog.contextvars import bound_contextvars

from runs.engine.effects import (
    CallModel,
    CallTools,
    Effect,
    ModelCallFailed,
    ModelCallTimedOut,
    ModelReplied,
    Outcome,
    PlannedStep,
    ToolsFinished,
)
from runs.engine.executor import run_agent_loop
from runs.engine.types import AgentResult, RunError
from runs.models import AgentStep, Run
from runs.services.providers.run_provider import ProviderRefused, open_run_provider
from runs.services.runs.end import (
    end_canceled,
    end_crashed,
    end_failed,
    end_run,
    requeue_run,
)
from runs.store.claims import (
    ClaimedRun,
    LeaseLost,
    RunCanceled,
    ShuttingDown,
    worker_state,
)
from runs.store.commits import (
    ModelReply,
    UnstoredReply,
    build_reply,
    commit_answers,
    commit_reply,
    persist,
)
from runs.store.history import RunHistory, load_history
from runs.store.limits import claim_limited_run, wake_limited_runs
from runs.store.metric_counters import QUEUE_WAIT, RUN_RECOVERIES, RUNS_STARTED
from runs.store.recovery import MAX_RECOVERIES
from runs.store.sanitizer import Sanitizer
from runs.store.transitions import claim_run
from runs.worker.answer_calls import CallAnswers, NotRecorded, load_call_answers
from runs.worker.call_model import ModelCaller
from runs.worker.provider_wait import RunSuspended
from runs.worker.run_tools import MAX_PARALLEL_CALLS, ToolRunner
from tools.mcp_servers.sessions import McpSessions

logger = logging.getLogger(__name__)


def execute_run(run_id: int) -> None:
    """Claim a run and finish it; do nothing if another worker has it.

    Whatever happens, the run is left in a state that can continue: ended,
    suspended, queued, or with a lease that expires.
    """
    if worker_state.is_stopping.is_set():
        return
    taken = _claim_run(run_id)
    if taken is None:
        return
    run, claim = taken
    count_claim(run)
    with (
        bound_contextvars(run=run_id, user=run.owner_id),
        McpSessions() as mcp_sessions,  # closed after the claim is released
    ):
        worker_state.add_claim(claim)
        try:
            _drive_run(run, claim, mcp_sessions)
        except LeaseLost:
            logger.info("run %s was claimed by another worker", run_id)
        finally:
            worker_state.remove_claim(claim)
            claim.release_crash_slot()
            _free_limits(claim)


def _free_limits(claim: ClaimedRun) -> None:
    """Let runs continue that waited for the place of this one."""
    try:
        wake_limited_runs(claim.limits)
    except (DatabaseError, InterfaceError):  # a sweep wakes them
        logger.warning("no waiting run was woken after run %s", claim.run_id)
        connection.close()


class ClaimResult(NamedTuple):
    run: Run
    claim: ClaimedRun


def _claim_run(run_id: int) -> ClaimResult | None:
    """Claim a run; a crash suspect only if no other one is running here."""
    recovers = worker_state.may_recover_runs()
    if run := claim_run(run_id, worker_state.worker, recovers=recovers):
        return ClaimResult(run, ClaimedRun(run.pk, run.fence))
    if limited := claim_limited_run(run_id, worker_state.worker):
        run, limits = limited
        return ClaimResult(run, ClaimedRun(run.pk, run.fence, limits=limits))
    if not recovers:
        return None
    if not worker_state.crash_slot.acquire(blocking=False):
        worker_state.waiting_suspects.add(run_id)
        return None
    claim = ClaimedRun(run_id, fence=0, crash_slot=worker_state.crash_slot)
    try:
        run = claim_run(run_id, worker_state.worker, takes_suspects=True)
    finally:
        if run is None:
            claim.release_crash_slot()
    return ClaimResult(run, replace(claim, fence=run.fence)) if run else None


def count_claim(run: Run) -> None:
    if run.recoveries:
        RUN_RECOVERIES.add()
    elif run.fence == 1 and run.started_at is not None:
        RUNS_STARTED.add(source=run.source)
        QUEUE_WAIT.observe((run.started_at - run.queued_at).total_seconds())


def _drive_run(run: Run, claim: ClaimedRun, mcp_sessions: McpSessions) -> None:
    """Drive `run`; record what ends it early."""
    try:
        if run.cancel_requested_at is not None:
            raise RunCanceled
        if run.recoveries >= MAX_RECOVERIES:
            end_crashed(run, claim)
            return
        RunDriver(run, claim, mcp_sessions).drive()
    except RunSuspended:
        pass
    except RunCanceled:
        persist(claim, lambda: end_canceled(run, fence=claim.fence))
    except ShuttingDown:
        requeue_run(run, claim)
    except LeaseLost:
        raise
    except (OperationalError, InterfaceError) as error:
        logger.warning(
            "run %s is queued again, database not available: %s", run.pk, error
        )
        connection.close()
        persist(claim, lambda: requeue_run(run, claim))
    except Exception:  # one run must not end the worker
        logger.exception("run %s failed with an internal error", run.pk)
        connection.close()
        persist(claim, lambda: end_failed(run, claim))


class RunDriver:
    """Drives one run from its history to its end."""

    def __init__(self, run: Run, claim: ClaimedRun, mcp_sessions: McpSessions) -> None:
        self.run, self.claim = run, claim
        self.record: RunHistory = load_history(run)
        self.sanitizer = Sanitizer()
        self.tools = ToolRunner(
            run, claim, self.sanitizer, mcp_sessions, self.record.spec.model
        )
        self.number = run.next_number
        self.model_caller: ModelCaller | None = None
        self.pending_reply: ModelReply | None = None
        """A reply that the engine has processed and the database does not have yet."""
        self.finish_reason = ""
        """Of the newest reply, as long as it has led to no call."""
        mode = self.record.spec.tool_mode
        self.answers = load_call_answers(mode) if mode is not None else None
        """Answers calls that must not be made; None for a real run."""

    def drive(self) -> None:
        """Perform the engine's effects until it ends; then store its result."""
        loop = run_agent_loop(
            self.record.spec,
            self.run.inputs,
            turns=self.record.turns,
            resumes=self.record.resumes,
        )
        try:
            result = self._loop(loop)
            end_run(
                self.run,
                self.claim,
                result,
                self.pending_reply,
                finish_reason=self.finish_reason,
            )
        finally:
            if self.model_caller is not None:
                self.model_caller.llm.close()

    def _loop(self, loop: Generator[Effect, Outcome, AgentResult]) -> AgentResult:
        try:
            effect = next(loop)
            while True:
                effect = loop.send(self._perform(effect))
        except StopIteration as end:
            result: AgentResult = end.value
            return result
        except NotRecorded as missing:
            loop.close()
            error = RunError(code="not_recorded", message=str(missing))
            return AgentResult(status="failed", error=error)

    def _perform(self, effect: Effect) -> Outcome:
        match effect:
            case CallModel():
                outcome = self._call_model(effect)
                if isinstance(outcome, ModelReplied):
                    self.finish_reason = outcome.reply.finish_reason
                return outcome
            case CallTools():
                self.finish_reason = ""
                return self._call_tools(effect)
        assert_never(effect)

    def _call_model(self, effect: CallModel) -> Outcome:
        """Answer from the history, or else call the model."""
        recorded = self.record.next_reply(effect)
        if recorded is not None:
            return recorded[1]
        self._commit_pending()
        self.claim.raise_if_ended()
        try:
            model_caller = self._get_model_caller()
        except ProviderRefused as refused:
            return ModelCallFailed(refused.code, str(refused))
        asked = model_caller.call(
            effect, number=self.number, prices=self.record.spec.prices
        )
        if isinstance(asked, ModelCallFailed | ModelCallTimedOut):
            return asked
        self.pending_reply = asked
        return ModelReplied(asked.reply, asked.elapsed)

    def _call_tools(self, effect: CallTools) -> ToolsFinished:
        """Commit the reply with its steps, then run the steps that are left."""
        if self.pending_reply is not None:
            reply = self._build_pending(effect.steps)
            if self.answers is not None:
                self.answers.answer_calls(reply.steps, effect.steps)
            rows = self.tools.take_reply(reply, effect)
        else:
            rows = self._recorded_steps(effect)
            if self.answers is not None:
                self._answer_open_calls(self.answers, rows, effect)
        try:
            if self.answers is not None:
                if self.answers.has_media:
                    persist(self.claim, self.answers.copy_media)
                self.answers.require_recorded(rows)
            self._raise_if_ended(rows)
            if self.model_caller is None:  # a resumed run: its secrets are not loaded
                self._load_secrets()
            return self.tools.run_calls(effect, rows)
        except (RunCanceled, ShuttingDown):
            self.tools.store_reply()
            raise

    def _raise_if_ended(self, rows: Sequence[AgentStep]) -> None:
        """Raise why the run must end before these calls; they are planned again."""
        try:
            self.claim.raise_if_ended()
        except (RunCanceled, ShuttingDown):
            self.tools.withdraw_calls(rows)
            raise

    def _answer_open_calls(
        self, answers: CallAnswers, rows: list[AgentStep], effect: CallTools
    ) -> None:
        """Answer calls that were stored without an answer, as a fork stores them."""
        changed = answers.answer_calls(rows, effect.steps)
        if changed:
            commit_answers(self.claim, changed)

    def _load_secrets(self) -> None:
        """Load the secrets to remove; without a provider there are none."""
        with suppress(ProviderRefused):
            self._get_model_caller()

    def _recorded_steps(self, effect: CallTools) -> list[AgentStep]:
        return [self.record.steps[step.index] for step in effect.steps]

    def _commit_pending(self) -> None:
        """Store a reply that led to no step: a summary of earlier rounds."""
        if self.pending_reply is not None:
            commit_reply(self.claim, self._build_pending(()))

    def _build_pending(self, steps: Sequence[PlannedStep]) -> UnstoredReply:
        """Build the rows of the pending reply, which is then no longer pending."""
        asked, self.pending_reply = self.pending_reply, None
        assert asked is not None
        self.number += 1
        return build_reply(
            self.claim, self.run, asked, steps, at_once=MAX_PARALLEL_CALLS
        )

    def _get_model_caller(self) -> ModelCaller:
        if self.model_caller is None:
            opened = open_run_provider(self.run, self.record.spec)
            self.sanitizer = self.tools.sanitizer = Sanitizer(opened.reply_secrets)
            self.model_caller = ModelCaller(
                self.run, self.claim, opened, self.sanitizer
            )
        return self.model_caller
