"""Running the calls of one reply: intents first, eight at a time, questions last."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from runs.engine.effects import CallTools, PlannedStep, ToolResult, ToolsAnswered
from runs.engine.observations import cut_for_store, text_of
from runs.models import AgentStep, Run
from runs.services.approvals import NOT_WHAT_WAS_APPROVED, allow_alike, yes_to
from runs.services.ask_model import GRACE, Parked
from runs.services.ask_person import Asking, ask_person
from runs.services.call_agents import AgentCall, AgentCalls, is_agent_call
from runs.services.commits import (
    commit_outcome,
    commit_start,
    give_back,
    keep_trying,
    persist,
)
from runs.services.held import Held, LeaseLost
from runs.services.record import result_of
from runs.services.redact import Choke
from runs.services.tool_use import Use, note_use
from tools.errors import CalledOff, DeadlinePassed, ToolFailed
from tools.kinds.registry import call_tool
from tools.services import tool_may_run
from tools.spec import ToolSpec
from tools.watch import Watch

AT_ONCE = 8
"""Calls of one reply that run together."""

RIGHTS_SECONDS = 1.0
"""For how long a tool that was allowed counts as allowed."""

Status = AgentStep.Status


@dataclass(frozen=True)
class Called:
    """What came of one call, in the thread that made it."""

    value: Any
    error: str | None
    took: float
    is_called_off: bool = False


class ToolRunner:
    """One run's hands."""

    def __init__(self, run: Run, held: Held, choke: Choke) -> None:
        self.run, self.held, self.choke = run, held, choke
        self.own: set[int] = set()
        """Steps that this very worker has committed as started."""
        self.allowed: dict[int, tuple[float, str | None]] = {}
        """When each tool's right was looked at, and why it may not run."""
        self.told: dict[int, str] = {}
        """What the model is told before the result, by step: changed arguments."""

    def answer(self, effect: CallTools, rows: list[AgentStep]) -> ToolsAnswered:
        """Run what is left of a round; raise `Parked` where a person is asked first.

        `rows` are the steps of the round in call order. Those that were `started` when
        a worker died run again where that does no harm; the others ask a person.
        """
        plans = dict(zip((row.index for row in rows), effect.steps, strict=True))
        self._look_for_a_yes([Asking(row, plans[row.index].tool) for row in rows])
        agents = self._agent_calls(rows, plans)
        agents.start()  # they work while the tools run
        left = [row for row in rows if self._is_left(row, plans[row.index])]
        left = [row for row in left if not self._is_refused(row, plans[row.index])]
        if left:
            self._run(effect, left, plans, since=_elapsed(rows))
        questions = [
            Asking(row, plans[row.index].tool)
            for row in rows
            if row.status in (Status.AWAITING_APPROVAL, Status.UNKNOWN)
            or row.status == Status.STARTED
            and not is_agent_call(plans[row.index])
        ]
        if questions:
            persist(self.held, lambda: ask_person(self.run, self.held, questions))
            raise Parked
        agents.finish()
        return ToolsAnswered(tuple(result_of(row) for row in rows))

    def _look_for_a_yes(self, asking: list[Asking]) -> None:
        """Let calls that need a yes run where there is one, and just for this call."""
        waiting = [one for one in asking if one.step.status == Status.AWAITING_APPROVAL]
        if waiting:
            persist(self.held, lambda: allow_alike(self.run, self.held, waiting))
        ready = [
            one
            for one in asking
            if one.spec is not None
            and one.spec.asks
            and one.step.status in (Status.PLANNED, Status.STARTED)
        ]
        found = persist(self.held, lambda: yes_to(ready)) if ready else {}
        for one in ready:
            yes = found.get(one.step.pk)
            if one.step.status == Status.STARTED:
                pass  # it was let through before its worker died
            elif yes is None:
                one.step.status = Status.AWAITING_APPROVAL
            elif not yes.is_for_this_call and one.spec is not None:
                refused = Called(None, NOT_WHAT_WAS_APPROVED, 0.0)
                self._keep(one.step, one.spec, refused, elapsed=0.0)
            if yes is not None and yes.edited:
                self.told[one.step.pk] = yes.edited

    def _agent_calls(
        self, rows: list[AgentStep], plans: dict[int, PlannedStep]
    ) -> AgentCalls:
        calls = [
            AgentCall(row, spec)
            for row in rows
            if is_agent_call(plans[row.index]) and (spec := plans[row.index].tool)
        ]
        return AgentCalls(self.run, self.held, lambda: self.choke, calls, self.told)

    def _is_left(self, row: AgentStep, plan: PlannedStep) -> bool:
        """Whether a row has to run; one of a dead worker only if that is harmless."""
        if is_agent_call(plan):
            return False
        if row.status == Status.PLANNED:
            return True
        if row.status != Status.STARTED or plan.tool is None:
            return False
        return row.pk in self.own or plan.tool.effect != "side_effect"

    def _is_refused(self, row: AgentStep, plan: PlannedStep) -> bool:
        """Answer a call whose tool was switched off or withdrawn since the start."""
        spec = plan.tool
        why = self._why_not(spec.tool_id) if spec and spec.tool_id else None
        if spec is None or why is None:
            return False
        self._keep(row, spec, Called(None, why, 0.0), elapsed=0.0)
        return True

    def _why_not(self, tool_id: int) -> str | None:
        """Return why a tool may not be used any more; asked at most once a second."""
        now = time.monotonic()
        asked_at, why = self.allowed.get(tool_id, (-RIGHTS_SECONDS, None))
        if now - asked_at >= RIGHTS_SECONDS:
            owner = self.run.agent.owner
            why = keep_trying(self.held, lambda: tool_may_run(tool_id, user=owner))
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
        longest = max((s.timeout * _tries(s) for s in specs.values() if s), default=0)
        batches = -(-len(left) // AT_ONCE)
        self.held.deadline = time.monotonic() + batches * longest + GRACE

        def end(row: AgentStep, called: Called) -> None:
            spec = specs[row.index]
            assert spec is not None
            self._keep(row, spec, called, elapsed=time.monotonic() - began)

        try:
            if len(left) == 1:
                self._start(left)
                end(left[0], self._call(left[0], specs[left[0].index], ends))
            else:
                self._together(left, lambda row: specs[row.index], ends, end)
        finally:
            self.held.deadline = None
        self.held.check()

    def _together(
        self,
        left: list[AgentStep],
        spec_of: Callable[[AgentStep], ToolSpec | None],
        ends: float | None,
        end: Callable[[AgentStep, Called], None],
    ) -> None:
        """Run calls side by side; each outcome is committed as it comes."""
        waiting, running = list(left), dict[Future[Called], AgentStep]()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tool") as pool:
            while waiting or running:
                batch = waiting[: AT_ONCE - len(running)]
                if batch and not self.held.flag.is_set():
                    del waiting[: len(batch)]
                    self._start(batch)
                    for row in batch:
                        job = pool.submit(self._call, row, spec_of(row), ends)
                        running[job] = row
                elif not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for job in done:
                    end(running.pop(job), job.result())
                give_back()

    def _start(self, rows: list[AgentStep]) -> None:
        """Commit the intent, where the reply commit has not done so already."""
        fresh = [row for row in rows if row.pk not in self.own]
        commit_start(self.held, fresh)
        self.own |= {row.pk for row in fresh}
        give_back()

    def _call(
        self, row: AgentStep, spec: ToolSpec | None, ends: float | None
    ) -> Called:
        """Make one call, tried again as the tool allows; no database in here.

        `ends` is the monotonic time at which the run's working time is over.
        """
        assert spec is not None
        if spec.effect == "side_effect" and self.held.is_stale():
            raise LeaseLost
        began = time.monotonic()
        called = Called(None, "", 0.0)
        for _ in range(_tries(spec)):
            called = self._call_once(row, spec, ends, began)
            if called.error is None or called.is_called_off or self.held.flag.is_set():
                break
        return called

    def _call_once(
        self, row: AgentStep, spec: ToolSpec, ends: float | None, began: float
    ) -> Called:
        limit = spec.timeout
        if ends is not None:
            limit = min(limit, max(ends - time.monotonic(), 0.0))
        watch = Watch(seconds=limit, flag=self.held.flag)
        value, error, is_called_off = None, None, False
        try:
            value = call_tool(
                spec,
                row.tool_input,
                watch=watch,
                idempotency_key=f"{self.run.pk}:{row.index}",
                run_id=self.run.pk,
            )
        except ToolFailed as failed:
            error = str(failed)
        except DeadlinePassed:
            error = f"The tool {spec.name!r} did not answer within {limit:g} s."
        except CalledOff as called_off:
            error, is_called_off = str(called_off), True
        except Exception as broken:  # noqa: BLE001  (the border to other people's code)
            error = str(broken) or type(broken).__name__
        return Called(value, error, time.monotonic() - began, is_called_off)

    def _keep(
        self, row: AgentStep, spec: ToolSpec, called: Called, *, elapsed: float
    ) -> None:
        if called.is_called_off:
            return  # the run's end says what became of the step
        text = called.error if called.error is not None else text_of(called.value)
        if told := self.told.get(row.pk):
            text = f"{told}\n{text}"
        result = ToolResult(
            observation=cut_for_store(self.choke.text(text)),
            failed=called.error is not None,
            value=self.choke.json(called.value) if spec.return_direct else None,
            elapsed=round(elapsed, 4),
        )
        commit_outcome(
            self.held,
            row,
            result,
            keeps_value=spec.return_direct,
            took=round(called.took, 4),
        )
        if spec.tool_id is not None:
            error = result.observation if result.failed else ""
            note_use(Use(spec.tool_id, result.failed, called.took, error))


def _tries(spec: ToolSpec) -> int:
    """Return how often a call may be made; one with side effects is made once."""
    return 1 + (spec.retries if spec.effect != "side_effect" else 0)


def _elapsed(rows: list[AgentStep]) -> float:
    """Return the working time the round's finished calls have taken already."""
    return max((row.elapsed or 0.0 for row in rows), default=0.0)
