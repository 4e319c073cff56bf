"""Run the calls of one reply: intents first, eight in parallel, approvals last."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from runs.engine.effects import CallTools, PlannedStep, ToolResult, ToolsFinished
from runs.engine.observations import stringify_value, truncate_for_storage
from runs.engine.types import ModelSettings
from runs.models import AgentStep, Run
from runs.services.approvals.granted import (
    APPROVED_CALL_CHANGED,
    apply_allowances,
    find_granted_approvals,
)
from runs.services.approvals.request import PendingCall, request_decisions
from runs.store.claims import ClaimedRun, LeaseLost, worker_state
from runs.store.commits import (
    UnstoredReply,
    commit_outcome,
    commit_reply,
    commit_start,
    commit_withdrawal,
    persist,
    release_connection,
    retry_until_database_up,
)
from runs.store.history import build_tool_results
from runs.store.metric_counters import TOOL_CALLS, TOOL_SECONDS
from runs.store.sanitizer import Sanitizer
from runs.store.step_media import store_step_media
from runs.store.step_progress import report_step_progress
from runs.store.tool_usage import ToolCallUsage, add_tool_usage
from runs.store.trace_ids import build_tool_traceparent
from runs.worker.call_agents import AgentCall, AgentCalls, is_agent_call
from runs.worker.call_model import THREAD_GRACE_SECONDS
from runs.worker.provider_wait import RunSuspended
from tools.definition.permission import find_tool_block
from tools.errors import CallCanceled, DeadlineExceeded, ToolFailed
from tools.kinds.registry import call_tool
from tools.mcp_servers.sessions import McpSessions
from tools.media import Media, MediaResult
from tools.net.deadline import Deadline
from tools.net.trace_context import send_traceparent
from tools.registry import ToolUser
from tools.spec import ToolSpec

MAX_PARALLEL_CALLS = 8
"""Calls of one reply that run in parallel."""

PERMISSION_CACHE_SECONDS = 1.0
"""How long a checked permission of a tool is reused."""

Status = AgentStep.Status


@dataclass(frozen=True)
class ToolOutcome:
    """The outcome of one call, in the thread that made it."""

    value: Any
    error: str | None
    seconds: float
    is_canceled: bool = False
    media: tuple[Media, ...] = ()


class ToolRunner:
    def __init__(
        self,
        run: Run,
        claim: ClaimedRun,
        sanitizer: Sanitizer,
        mcp_sessions: McpSessions,
        model: ModelSettings,
    ) -> None:
        self.run, self.claim, self.sanitizer = run, claim, sanitizer
        self.model = model
        self.mcp_sessions = mcp_sessions
        self.user = ToolUser(run.owner_id, run.owner.get_username())
        self.started_here: set[int] = set()
        """Steps that this worker has committed as started."""
        self.allowed: dict[int, tuple[float, str | None]] = {}
        """When each tool's permission was checked, and why it was refused."""
        self.notices: dict[int, str] = {}
        """Text the model reads before the result, by step: edited arguments."""
        self.unstored: UnstoredReply | None = None
        """The reply whose only call is running; stored when that ends or is slow."""
        self.store_error: Exception | None = None
        """Why the reply of a slow call could not be stored."""

    def take_reply(self, reply: UnstoredReply, effect: CallTools) -> list[AgentStep]:
        """Store a reply, or keep it for its outcome; return its steps.

        A call that only reads may be made again, and so may the model's: what a crash
        loses is repeated (docs/decisions/0029). The reply of a run that has lost a
        worker is stored first, so that people see which call that was.
        """
        self.unstored = reply
        is_ending = self.claim.flag.is_set() or worker_state.is_stopping.is_set()
        is_started = any(row.status == Status.STARTED for row in reply.steps)
        may_wait = is_started and _is_single_read(effect)
        if self.run.recoveries or is_ending or not may_wait:
            self.store_reply()
        return list(reply.steps)

    def withdraw_calls(self, rows: Iterable[AgentStep]) -> None:
        """Store the calls of a round that this worker has not begun as planned.

        Stored as started, calls with side effects would have an unknown outcome.
        """
        is_unstored = self.unstored is not None
        own = [
            row
            for row in rows
            if row.status == Status.STARTED
            and (is_unstored or row.pk in self.started_here)
        ]
        for row in own:
            row.status, row.started_at, row.attempts = Status.PLANNED, None, 0
        self.started_here -= {row.pk for row in own}
        if is_unstored:
            self.store_reply()
        elif own:
            commit_withdrawal(self.claim, own)

    def store_reply(self) -> None:
        """Store the reply that was kept for its outcome, if there is one."""
        reply, self.unstored = self.unstored, None
        if reply is None:
            return
        commit_reply(self.claim, reply)
        self.started_here |= {
            row.pk for row in reply.steps if row.status == Status.STARTED
        }

    def _store_reply_of_slow_call(self) -> None:
        """Store the reply while its call runs; an error ends the call."""
        try:
            self.store_reply()
        except Exception as error:  # noqa: BLE001  (raised again after the call)
            self.store_error = error
            self.claim.flag.set()

    def run_calls(self, effect: CallTools, rows: list[AgentStep]) -> ToolsFinished:
        """Run the rest of a round; raise `RunSuspended` if a person must decide.

        `rows` are the steps of the round in call order. Those that were
        `started` when a worker died run again if that is safe; the others need
        a decision.
        """
        plans = dict(zip((row.index for row in rows), effect.steps, strict=True))
        self._apply_approvals([PendingCall(row, plans[row.index].tool) for row in rows])
        agents = self._build_agent_calls(rows, plans)
        agents.start()  # they run while the tools run
        left = [row for row in rows if self._must_run(row, plans[row.index])]
        left = [
            row for row in left if not self._reject_if_disabled(row, plans[row.index])
        ]
        if left:
            self._run(effect, left, plans, since=_get_elapsed_seconds(rows))
        questions = [
            PendingCall(row, plans[row.index].tool)
            for row in rows
            if row.status in (Status.AWAITING_APPROVAL, Status.UNKNOWN)
            or row.status == Status.STARTED
            and not is_agent_call(plans[row.index])
        ]
        if questions:
            persist(
                self.claim, lambda: request_decisions(self.run, self.claim, questions)
            )
            raise RunSuspended
        agents.finish()
        return build_tool_results(rows, self.model)

    def _apply_approvals(self, asking: list[PendingCall]) -> None:
        """Let approved calls run, and only exactly the approved call."""
        waiting = [one for one in asking if one.step.status == Status.AWAITING_APPROVAL]
        if waiting:
            persist(self.claim, lambda: apply_allowances(self.run, self.claim, waiting))
        ready = [
            one
            for one in asking
            if one.spec is not None
            and one.spec.asks
            and one.step.status in (Status.PLANNED, Status.STARTED)
        ]
        found = (
            persist(self.claim, lambda: find_granted_approvals(ready)) if ready else {}
        )
        for one in ready:
            yes = found.get(one.step.pk)
            if one.step.status == Status.STARTED:
                pass  # it was approved before its worker died
            elif yes is None:
                one.step.status = Status.AWAITING_APPROVAL
            elif not yes.matches_approved_call and one.spec is not None:
                refused = ToolOutcome(None, APPROVED_CALL_CHANGED, 0.0)
                self._commit_outcome(one.step, one.spec, refused, elapsed=0.0)
            if yes is not None and yes.edit_note:
                self.notices[one.step.pk] = yes.edit_note

    def _build_agent_calls(
        self, rows: list[AgentStep], plans: dict[int, PlannedStep]
    ) -> AgentCalls:
        calls = [
            AgentCall(row, spec)
            for row in rows
            if is_agent_call(plans[row.index]) and (spec := plans[row.index].tool)
        ]
        return AgentCalls(
            self.run, self.claim, lambda: self.sanitizer, calls, self.notices
        )

    def _must_run(self, row: AgentStep, plan: PlannedStep) -> bool:
        """Whether a step has to run; one of a dead worker only if that is safe."""
        if is_agent_call(plan):
            return False
        if row.status == Status.PLANNED:
            return True
        if row.status != Status.STARTED or plan.tool is None:
            return False
        return plan.tool.effect != "side_effect" or row.pk in self.started_here

    def _reject_if_disabled(self, row: AgentStep, plan: PlannedStep) -> bool:
        """Answer a call whose tool was disabled or withdrawn since the start."""
        spec = plan.tool
        why = self._find_refusal(spec.tool_id) if spec and spec.tool_id else None
        if spec is None or why is None:
            return False
        self._commit_outcome(row, spec, ToolOutcome(None, why, 0.0), elapsed=0.0)
        return True

    def _find_refusal(self, tool_id: int) -> str | None:
        """Return why a tool may no longer be used; checked at most once a second."""
        now = time.monotonic()
        asked_at, why = self.allowed.get(tool_id, (-PERMISSION_CACHE_SECONDS, None))
        if now - asked_at >= PERMISSION_CACHE_SECONDS:
            owner = self.run.agent.owner
            why = retry_until_database_up(
                self.claim, lambda: find_tool_block(tool_id, user=owner)
            )
            self.allowed[tool_id] = (now, why)
        return why

    def _run(
        self,
        effect: CallTools,
        left: list[AgentStep],
        plans: dict[int, PlannedStep],
        *,
        since: float,
    ) -> None:
        began = time.monotonic() - since
        ends = None if effect.seconds is None else time.monotonic() + effect.seconds
        specs = {row.index: plans[row.index].tool for row in left}
        longest = max(
            (s.timeout * _get_max_attempts(s) for s in specs.values() if s), default=0
        )
        batches = -(-len(left) // MAX_PARALLEL_CALLS)
        self.claim.deadline = (
            time.monotonic() + batches * longest + THREAD_GRACE_SECONDS
        )

        def end(row: AgentStep, called: ToolOutcome) -> None:
            spec = specs[row.index]
            assert spec is not None
            self._commit_outcome(row, spec, called, elapsed=time.monotonic() - began)

        try:
            if len(left) == 1:
                if self.unstored is None:
                    self._start(left)
                called = self._call(left[0], specs[left[0].index], ends)
                if self.store_error is not None:
                    raise self.store_error
                end(left[0], called)
            else:
                self._run_in_parallel(left, lambda row: specs[row.index], ends, end)
        finally:
            self.claim.deadline = None
        self.claim.raise_if_ended()

    def _run_in_parallel(
        self,
        left: list[AgentStep],
        spec_of: Callable[[AgentStep], ToolSpec | None],
        ends: float | None,
        end: Callable[[AgentStep, ToolOutcome], None],
    ) -> None:
        """Run calls in parallel; each outcome is committed when it arrives."""
        waiting, running = list(left), dict[Future[ToolOutcome], AgentStep]()
        with ThreadPoolExecutor(MAX_PARALLEL_CALLS, thread_name_prefix="tool") as pool:
            while waiting or running:
                batch = waiting[: MAX_PARALLEL_CALLS - len(running)]
                if batch and not self.claim.flag.is_set():
                    del waiting[: len(batch)]
                    self._start(batch)
                    for row in batch:
                        call = copy_context().run  # log lines name the run
                        job = pool.submit(call, self._call, row, spec_of(row), ends)
                        running[job] = row
                elif not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for job in done:
                    end(running.pop(job), job.result())
                release_connection()

    def _start(self, rows: list[AgentStep]) -> None:
        """Commit the intent, unless the reply commit already did."""
        fresh = [row for row in rows if row.pk not in self.started_here]
        commit_start(self.claim, fresh)
        self.started_here |= {row.pk for row in fresh}
        release_connection()

    def _call(
        self, row: AgentStep, spec: ToolSpec | None, ends: float | None
    ) -> ToolOutcome:
        """Make one call with the tool's retries; without the database.

        `ends` is the monotonic time at which the run's working time is over.
        """
        assert spec is not None
        if spec.effect == "side_effect" and self.claim.is_stale():
            raise LeaseLost
        began = time.monotonic()
        called = ToolOutcome(None, "", 0.0)
        parent = build_tool_traceparent(self.run, row.index)
        for _ in range(_get_max_attempts(spec)):
            with send_traceparent(parent):
                called = self._call_once(row, spec, ends, began)
            if called.error is None or called.is_canceled or self.claim.flag.is_set():
                break
        return called

    def _call_once(
        self, row: AgentStep, spec: ToolSpec, ends: float | None, began: float
    ) -> ToolOutcome:
        limit = spec.timeout
        if ends is not None:
            limit = min(limit, max(ends - time.monotonic(), 0.0))
        deadline = Deadline(
            seconds=limit,
            flag=self.claim.flag,
            on_slow=self._store_reply_of_slow_call if self.unstored else None,
        )
        value, error, is_called_off = None, None, False
        media: tuple[Media, ...] = ()
        try:
            value = call_tool(
                spec,
                row.tool_input,
                deadline=deadline,
                idempotency_key=f"{self.run.pk}:{row.index}",
                run_id=self.run.pk,
                mcp_sessions=self.mcp_sessions,
                user=self.user,
                on_progress=lambda text: report_step_progress(
                    self.claim, row, self.sanitizer.text(text)
                ),
            )
            if isinstance(value, MediaResult):
                value, media = value.value, value.media
        except ToolFailed as failed:
            error = str(failed)
        except DeadlineExceeded:
            error = f"The tool {spec.name!r} did not answer within {limit:g} s."
        except CallCanceled as called_off:
            error, is_called_off = str(called_off), True
        except Exception as broken:  # noqa: BLE001  (boundary to other people's code)
            error = str(broken) or type(broken).__name__
        took = time.monotonic() - began
        return ToolOutcome(value, error, took, is_called_off, media)

    def _commit_outcome(
        self, row: AgentStep, spec: ToolSpec, called: ToolOutcome, *, elapsed: float
    ) -> None:
        if called.is_canceled:
            return  # the end of the run sets the step's status
        text = (
            called.error if called.error is not None else stringify_value(called.value)
        )
        if message := self.notices.get(row.pk):
            text = f"{message}\n{text}"
        result = ToolResult(
            observation=truncate_for_storage(self.sanitizer.text(text)),
            failed=called.error is not None,
            value=self.sanitizer.json(called.value) if spec.return_direct else None,
            elapsed=round(elapsed, 4),
        )
        if called.media:
            self.store_reply()
            persist(self.claim, lambda: store_step_media(self.claim, row, called.media))
        commit_outcome(
            self.claim,
            row,
            result,
            keeps_value=spec.return_direct,
            seconds=round(called.seconds, 4),
            reply=self.unstored,
        )
        self.unstored = None
        if spec.tool_id is not None:
            outcome = "failed" if result.failed else "succeeded"
            TOOL_CALLS.add(tool=spec.name, outcome=outcome)
            TOOL_SECONDS.add(called.seconds, tool=spec.name)
            error = result.observation if result.failed else ""
            add_tool_usage(
                ToolCallUsage(spec.tool_id, result.failed, called.seconds, error)
            )


def _is_single_read(effect: CallTools) -> bool:
    """Whether a round is one call that changes nothing and needs nobody's approval."""
    if len(effect.steps) != 1:
        return False
    step = effect.steps[0]
    spec = step.tool
    return (
        spec is not None
        and spec.effect == "read"
        and not spec.asks
        and not is_agent_call(step)
    )


def _get_max_attempts(spec: ToolSpec) -> int:
    """Return how often a call may be made; one with side effects only once."""
    return 1 + (spec.retries if spec.effect != "side_effect" else 0)


def _get_elapsed_seconds(rows: list[AgentStep]) -> float:
    """Return the working time of the round's finished calls."""
    return max((row.elapsed or 0.0 for row in rows), default=0.0)
