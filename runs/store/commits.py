"""Each write of a worker: one fenced transaction that increments `seq`."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from runs.engine.effects import CallModel, PlannedStep, ToolResult
from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.types import Reply, Usage
from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.store.claims import (
    ClaimedRun,
    LeaseLost,
    RunCanceled,
    ShuttingDown,
    worker_state,
)
from runs.store.database_clock import site_clock
from runs.store.fenced_commit import Commit, NewReply, write_commit
from runs.store.transitions import notify_run_changed

logger = logging.getLogger(__name__)
T = TypeVar("T")

DATABASE_RETRY_SECONDS = 1.0
"""Seconds between two attempts to reach a database that is not available."""

MAX_TOKEN_COUNT = 2_147_483_647
"""What the column holds; a larger count reported by a server is cut."""

INCREMENT_SEQ = """
    UPDATE runs_run SET seq = seq + 1
    WHERE id = %s AND fence = %s AND status = 'running'
    RETURNING seq
"""
COMMIT_OUTCOME = """
    UPDATE runs_run SET seq = seq + 1, recoveries = 0
    WHERE id = %s AND fence = %s AND status = 'running'
    RETURNING seq
"""
COUNT_REPLY = """recoveries = 0,
    next_index = next_index + %s, next_number = next_number + 1, rounds = %s,
    model_calls = model_calls + 1, input_tokens = input_tokens + %s,
    output_tokens = output_tokens + %s, cost = cost + %s"""
REPLY_IS_NEXT = "next_index = %s AND next_number = %s"
COMMIT_REPLY = f"""
    UPDATE runs_run SET seq = seq + 1,
    waiting_provider_id = NULL, waiting_since = NULL, waiting_for = '', {COUNT_REPLY}
    WHERE id = %s AND fence = %s AND status = 'running' AND {REPLY_IS_NEXT}
    RETURNING seq
"""  # noqa: S608  (our own names)

START_COLUMNS = ("status", "started_at", "attempts")
OUTCOME_COLUMNS = ("status", "observation", "value", "elapsed", "duration", "ended_at")
"""The columns of a step that its start and its end write."""


@dataclass(frozen=True)
class ModelReply:
    """A model reply that is not committed yet."""

    effect: CallModel
    number: int
    reply: Reply
    digest: str
    started_at: datetime
    elapsed: float
    first_token: float | None
    cost: Decimal


def persist(claim: ClaimedRun, write: Callable[[], T]) -> T:
    """Run `write` in one transaction; wait while the database is not available.

    A commit whose response was lost is retried, so `write` must be idempotent.
    """

    def transact() -> T:
        with transaction.atomic():
            return write()

    return retry_until_database_up(claim, transact)


def retry_until_database_up(claim: ClaimedRun, write: Callable[[], T]) -> T:
    """Run `write`, a transaction of its own; wait for an unavailable database."""
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            logger.warning("run %s waits for the database: %s", claim.run_id, error)
            connection.close()
            if worker_state.is_stopping.is_set():
                raise ShuttingDown from error
            time.sleep(DATABASE_RETRY_SECONDS)


def release_connection() -> None:
    """Return this thread's connection to the pool before an effect; not on SQLite."""
    here = connections[DEFAULT_DB_ALIAS]
    if here.vendor == "postgresql" and here.connection is not None:
        here.close()


def increment_seq(claim: ClaimedRun) -> int:
    """Begin a worker's transaction; raise `LeaseLost` if the fence is not ours."""
    return write_commit(Commit(INCREMENT_SEQ, [claim.run_id, claim.fence]))


def raise_if_canceled(claim: ClaimedRun) -> None:
    """Raise `RunCanceled` if a person canceled the run, before it is suspended.

    In a transaction that has incremented `seq`: a cancel request is either seen
    here, or it waits for the commit and then finds a run that no worker has
    claimed.
    """
    if Run.objects.filter(pk=claim.run_id, cancel_requested_at__isnull=False).exists():
        raise RunCanceled


@dataclass(frozen=True)
class UnstoredReply:
    """A reply with its steps, ready to be stored as the steps are then."""

    asked: ModelReply
    commit: Commit

    @property
    def steps(self) -> Sequence[AgentStep]:
        return self.commit.steps


def build_reply(
    claim: ClaimedRun,
    run: Run,
    asked: ModelReply,
    steps: Sequence[PlannedStep],
    *,
    at_once: int,
) -> UnstoredReply:
    """Build a reply with its steps; the first `at_once` calls are marked started."""
    new = build_reply_row(run, asked, steps=len(steps))
    rows = [
        build_agent_step(new.call, step, seq=0, may_start=place < at_once)
        for place, step in _pair_with_slot(steps)
    ]
    fence = (claim.run_id, claim.fence)
    values = [*new.assignment_values, *fence, *new.condition_values]
    return UnstoredReply(asked, Commit(COMMIT_REPLY, values, call=new.call, steps=rows))


def commit_reply(claim: ClaimedRun, reply: UnstoredReply) -> None:
    """Store a reply with its steps as they are: started, or with an outcome."""

    def write() -> None:
        try:
            notify_run_changed(claim.run_id, _send_commit(claim, reply.commit))
        except LeaseLost:
            if not is_reply_committed(claim, reply.asked):
                raise
            _read_keys_of_steps(claim, reply)

    retry_until_database_up(claim, write)
    claim.release_crash_slot()


def _read_keys_of_steps(claim: ClaimedRun, reply: UnstoredReply) -> None:
    """Complete the rows of a commit whose response was lost."""
    steps = {step.index: step for step in reply.steps}
    for stored in AgentStep.objects.filter(run=claim.run_id, index__in=steps):
        steps[stored.index].__dict__.update(stored.__dict__)


def build_reply_row(run: Run, asked: ModelReply, *, steps: int) -> NewReply:
    """Return the row of a reply with this number of steps, and its usage."""
    usage = asked.reply.usage or Usage()
    settings = asked.effect.request.settings.model_dump(exclude_defaults=True)
    call = ModelCall(
        run=run,
        number=asked.number,
        purpose=asked.effect.purpose,
        at_index=asked.effect.at_index,
        round=asked.effect.round,
        reply=asked.reply.model_dump(mode="json", exclude_defaults=True),
        settings={} if settings == run.spec.body.get("model") else settings,
        model=asked.reply.model[:200],
        digest=asked.digest,
        left_out=list(asked.effect.left_out),
        input_tokens=min(usage.input_tokens, MAX_TOKEN_COUNT),
        cached_tokens=min(usage.cached_tokens, MAX_TOKEN_COUNT),
        output_tokens=min(usage.output_tokens, MAX_TOKEN_COUNT),
        reasoning_tokens=min(usage.reasoning_tokens, MAX_TOKEN_COUNT),
        cost=asked.cost,
        started_at=asked.started_at,
        first_token=asked.first_token,
        elapsed=asked.elapsed,
    )
    counted = (steps, call.round, call.input_tokens, call.output_tokens, call.cost)
    expected = (call.at_index, call.number)
    return NewReply(call, COUNT_REPLY, counted, REPLY_IS_NEXT, expected)


def is_reply_committed(claim: ClaimedRun, asked: ModelReply) -> bool:
    """Whether an earlier attempt stored this reply and only the response was lost."""
    return ModelCall.objects.filter(
        run_id=claim.run_id,
        number=asked.number,
        digest=asked.digest,
        started_at=asked.started_at,
        run__fence=claim.fence,
        run__status=Run.Status.RUNNING,
    ).exists()


def commit_start(claim: ClaimedRun, steps: Sequence[AgentStep]) -> None:
    """Store the intent to run `steps`, before they run.

    Without steps, if the reply commit stored the intent already, it only checks the
    fence.
    """
    if not steps:
        if claim.is_stale():
            _commit_changes(claim, INCREMENT_SEQ, (), ())
        return

    now = site_clock.now()
    for step in steps:
        step.status, step.started_at = AgentStep.Status.STARTED, now
        step.attempts += 1  # once, even if the commit is retried

    _commit_changes(claim, INCREMENT_SEQ, steps, START_COLUMNS)


def commit_outcome(
    claim: ClaimedRun,
    step: AgentStep,
    result: ToolResult,
    *,
    keeps_value: bool,
    seconds: float,
    reply: UnstoredReply | None = None,
) -> None:
    """Store the outcome of a call, with the reply that asked for it if that is new."""
    step.status = (
        AgentStep.Status.FAILED if result.failed else AgentStep.Status.SUCCEEDED
    )
    step.observation = result.observation
    step.value = result.value if keeps_value else None
    step.elapsed, step.duration = result.elapsed, seconds
    step.ended_at = site_clock.now()
    columns: tuple[str, ...] = OUTCOME_COLUMNS
    if result.tokens or result.cost:
        step.usage = {"tokens": result.tokens, "cost": result.cost}
        columns = (*OUTCOME_COLUMNS, "usage")

    if reply is not None:
        commit_reply(claim, reply)
        return
    _commit_changes(claim, COMMIT_OUTCOME, [step], columns)
    claim.release_crash_slot()


def commit_withdrawal(claim: ClaimedRun, steps: Sequence[AgentStep]) -> None:
    """Store that `steps`, whose start was stored, are planned: none of them ran."""
    _commit_changes(claim, INCREMENT_SEQ, steps, START_COLUMNS)


def commit_answers(claim: ClaimedRun, steps: Sequence[AgentStep]) -> None:
    """Store the answers of stored calls that are not made."""
    columns = (*OUTCOME_COLUMNS, "started_at", "attempts", "answered_by")
    _commit_changes(claim, COMMIT_OUTCOME, steps, columns)


def _commit_changes(
    claim: ClaimedRun, fence: str, steps: Sequence[AgentStep], columns: tuple[str, ...]
) -> None:
    commit = Commit(fence, [claim.run_id, claim.fence], changed=steps, columns=columns)
    notify_run_changed(
        claim.run_id,
        retry_until_database_up(claim, lambda: _send_commit(claim, commit)),
    )


def _send_commit(claim: ClaimedRun, commit: Commit) -> int:
    """Write it; after a success, the lease was ours when the write began."""
    began = time.monotonic()
    seq = write_commit(commit)
    claim.last_write_at = began
    return seq


def commit_attempt(claim: ClaimedRun, attempt: ModelAttempt) -> None:
    def write() -> None:
        attempt.created_seq = increment_seq(claim)
        ModelAttempt.objects.bulk_create([attempt], ignore_conflicts=True)
        notify_run_changed(claim.run_id, attempt.created_seq)

    persist(claim, write)


def _pair_with_slot(steps: Sequence[PlannedStep]) -> list[tuple[int, PlannedStep]]:
    """Pair each step with its position among those that run in parallel."""
    place, pairs = 0, []
    for step in steps:
        pairs.append((place, step))
        place += step.tool is not None and not step.tool.asks
    return pairs


def build_agent_step(
    call: ModelCall, step: PlannedStep, *, seq: int, may_start: bool
) -> AgentStep:
    status, now = _initial_status(step, may_start=may_start), site_clock.now()
    is_started = status == AgentStep.Status.STARTED
    return AgentStep(
        run=call.run,
        index=step.index,
        model_call=call,
        round=call.round,
        tool=clean_text(step.action.tool)[:200],
        tool_ref_id=step.tool.tool_id if step.tool else None,
        tool_input=clean_json(step.action.tool_input),
        log=clean_text(step.action.log),
        call_id=clean_text(step.action.call_id or ""),
        effect=step.tool.effect if step.tool else "",
        status=status,
        observation=clean_text(step.observation or ""),
        attempts=int(is_started),
        started_at=now if is_started else None,
        ended_at=now if step.is_answered else None,
        elapsed=0.0 if step.is_answered else None,
        created_seq=seq,
        changed_seq=seq,
    )


def _initial_status(step: PlannedStep, *, may_start: bool) -> str:
    if step.tool is None:
        return AgentStep.Status.FAILED
    if step.tool.asks:
        return AgentStep.Status.AWAITING_APPROVAL
    return AgentStep.Status.STARTED if may_start else AgentStep.Status.PLANNED
