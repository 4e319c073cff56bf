"""Each write of a worker: one fenced transaction that raises `seq`, or none at all."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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

from runs.engine.clean import clean_json, clean_text
from runs.engine.effects import CallModel, PlannedStep, ToolResult
from runs.engine.types import Reply, Usage
from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.services.fenced import Commit, NewReply, send
from runs.services.held import Cancelled, Held, LeaseLost, ShuttingDown, process
from runs.services.move import announce

logger = logging.getLogger(__name__)
T = TypeVar("T")

AWAY_SECONDS = 1.0
"""Between two tries to reach a database that is away."""

MOST_TOKENS = 2_147_483_647
"""What a column holds; a server that claims more is not believed."""

RAISE_SEQ = """
    UPDATE runs_run SET seq = seq + 1
    WHERE id = %s AND fence = %s AND status = 'running'
    RETURNING seq
"""
COMMIT_OUTCOME = """
    UPDATE runs_run SET seq = seq + 1, rescues = 0
    WHERE id = %s AND fence = %s AND status = 'running'
    RETURNING seq
"""
COUNT_REPLY = """rescues = 0,
    next_index = next_index + %s, next_number = next_number + 1, rounds = %s,
    model_calls = model_calls + 1, input_tokens = input_tokens + %s,
    output_tokens = output_tokens + %s, cost = cost + %s"""
REPLY_IS_NEXT = "next_index = %s AND next_number = %s"
COMMIT_REPLY = f"""
    UPDATE runs_run SET seq = seq + 1, {COUNT_REPLY}
    WHERE id = %s AND fence = %s AND status = 'running' AND {REPLY_IS_NEXT}
    RETURNING seq
"""  # noqa: S608  (our own names)

START = ("status", "started_at", "attempts")
OUTCOME = ("status", "observation", "value", "elapsed", "duration", "ended_at")
"""The columns of a step that its start and its end write."""


@dataclass(frozen=True)
class Asked:
    """A model call that was answered and is not committed yet."""

    effect: CallModel
    number: int
    reply: Reply
    digest: str
    started_at: datetime
    elapsed: float
    first_token: float | None
    cost: Decimal


def persist(held: Held, write: Callable[[], T]) -> T:
    """Do `write` in one transaction; wait while the database is away.

    A commit whose answer was lost is tried again, so `write` must do no harm twice.
    """

    def transact() -> T:
        with transaction.atomic():
            return write()

    return keep_trying(held, transact)


def keep_trying(held: Held, write: Callable[[], T]) -> T:
    """Do `write`, which is a transaction by itself; wait while the database is away."""
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            logger.warning("run %s waits for the database: %s", held.run_id, error)
            connection.close()
            if process.is_stopping.is_set():
                raise ShuttingDown from error
            time.sleep(AWAY_SECONDS)


def give_back() -> None:
    """Return this thread's connection to the pool before an effect; not on SQLite."""
    here = connections[DEFAULT_DB_ALIAS]
    if here.vendor == "postgresql" and here.connection is not None:
        here.close()


def raise_seq(held: Held) -> int:
    """Begin a worker's transaction; raise `LeaseLost` where the fence is not ours."""
    return send(Commit(RAISE_SEQ, [held.run_id, held.fence]))


def refuse_if_cancelled(held: Held) -> None:
    """Raise `Cancelled` where a person has stopped the run, before it is parked.

    Inside a transaction that has raised `seq`: a Stop either is seen here, or waits
    for the commit and then finds a run that no worker holds.
    """
    if Run.objects.filter(pk=held.run_id, cancel_requested_at__isnull=False).exists():
        raise Cancelled


def commit_reply(
    held: Held, run: Run, asked: Asked, steps: Sequence[PlannedStep], *, at_once: int
) -> list[AgentStep]:
    """Store a reply with the steps it led to; the first `at_once` calls are started."""
    new = new_reply(run, asked, steps=len(steps))
    rows = [
        step_of(new.call, step, seq=0, may_start=place < at_once)
        for place, step in _with_place(steps)
    ]
    fence = (held.run_id, held.fence)
    values = [*new.counted, *fence, *new.expected]
    commit = Commit(COMMIT_REPLY, values, call=new.call, steps=rows)

    def write() -> list[AgentStep]:
        try:
            announce(held.run_id, _send(held, commit))
        except LeaseLost:
            if was_committed(held, asked):
                index = asked.effect.at_index
                return list(AgentStep.objects.filter(run=run, index__gte=index))
            raise
        return rows

    written = keep_trying(held, write)
    held.prove()
    return written


def new_reply(run: Run, asked: Asked, *, steps: int) -> NewReply:
    """Return the row of a reply that leads to so many steps, and what it counts."""
    usage = asked.reply.usage or Usage()
    call = ModelCall(
        run=run,
        number=asked.number,
        purpose=asked.effect.purpose,
        at_index=asked.effect.at_index,
        round=asked.effect.round,
        reply=asked.reply.model_dump(mode="json", exclude_defaults=True),
        settings=asked.effect.request.settings.model_dump(exclude_defaults=True),
        model=asked.reply.model[:200],
        digest=asked.digest,
        left_out=list(asked.effect.left_out),
        input_tokens=min(usage.input_tokens, MOST_TOKENS),
        cached_tokens=min(usage.cached_tokens, MOST_TOKENS),
        output_tokens=min(usage.output_tokens, MOST_TOKENS),
        reasoning_tokens=min(usage.reasoning_tokens, MOST_TOKENS),
        cost=asked.cost,
        started_at=asked.started_at,
        first_token=asked.first_token,
        elapsed=asked.elapsed,
    )
    counted = (steps, call.round, call.input_tokens, call.output_tokens, call.cost)
    expected = (call.at_index, call.number)
    return NewReply(call, COUNT_REPLY, counted, REPLY_IS_NEXT, expected)


def was_committed(held: Held, asked: Asked) -> bool:
    """Whether an earlier try stored this very reply, and only its answer was lost."""
    return ModelCall.objects.filter(
        run_id=held.run_id,
        number=asked.number,
        digest=asked.digest,
        started_at=asked.started_at,
        run__fence=held.fence,
        run__status=Run.Status.RUNNING,
    ).exists()


def commit_start(held: Held, steps: Sequence[AgentStep]) -> None:
    """Store the intent to run `steps`, before they run.

    Where there is none, for it came with the reply long ago, only the fence is tried.
    """
    if not steps:
        if held.is_stale():
            _commit_changes(held, RAISE_SEQ, (), ())
        return

    now = datetime.now(UTC)
    for step in steps:
        step.status, step.started_at = AgentStep.Status.STARTED, now
        step.attempts += 1  # once, however often the commit is tried

    _commit_changes(held, RAISE_SEQ, steps, START)


def commit_outcome(
    held: Held, step: AgentStep, result: ToolResult, *, keeps_value: bool, took: float
) -> None:
    """Store what came of a started call."""
    step.status = (
        AgentStep.Status.FAILED if result.failed else AgentStep.Status.SUCCEEDED
    )
    step.observation = result.observation
    step.value = result.value if keeps_value else None
    step.elapsed, step.duration = result.elapsed, took
    step.ended_at = datetime.now(UTC)
    columns: tuple[str, ...] = OUTCOME
    if result.tokens or result.cost:
        step.usage = {"tokens": result.tokens, "cost": result.cost}
        columns = (*OUTCOME, "usage")

    _commit_changes(held, COMMIT_OUTCOME, [step], columns)
    held.prove()


def _commit_changes(
    held: Held, fence: str, steps: Sequence[AgentStep], columns: tuple[str, ...]
) -> None:
    commit = Commit(fence, [held.run_id, held.fence], changed=steps, columns=columns)
    announce(held.run_id, keep_trying(held, lambda: _send(held, commit)))


def _send(held: Held, commit: Commit) -> int:
    """Write it; once that has succeeded, the run was ours when it began."""
    began = time.monotonic()
    seq = send(commit)
    held.wrote_at = began
    return seq


def commit_attempt(held: Held, attempt: ModelAttempt) -> None:
    """Store a failed attempt of a model call as it happens."""

    def write() -> None:
        attempt.created_seq = raise_seq(held)
        ModelAttempt.objects.bulk_create([attempt], ignore_conflicts=True)
        announce(held.run_id, attempt.created_seq)

    persist(held, write)


def _with_place(steps: Sequence[PlannedStep]) -> list[tuple[int, PlannedStep]]:
    """Pair each step with its place among those that run at once."""
    place, pairs = 0, []
    for step in steps:
        pairs.append((place, step))
        place += step.tool is not None and not step.tool.asks
    return pairs


def step_of(
    call: ModelCall, step: PlannedStep, *, seq: int, may_start: bool
) -> AgentStep:
    """Return the row of a step as the reply `call` asks for it."""
    status, now = _first_status(step, may_start=may_start), datetime.now(UTC)
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


def _first_status(step: PlannedStep, *, may_start: bool) -> str:
    if step.tool is None:
        return AgentStep.Status.FAILED
    if step.tool.asks:
        return AgentStep.Status.AWAITING_APPROVAL
    return AgentStep.Status.STARTED if may_start else AgentStep.Status.PLANNED
