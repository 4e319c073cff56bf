"""Agents called as tools: child runs in parallel, and a parent that waits.

A waiting parent occupies no worker. The end of its last child queues it again; the
worker that claims it finds the children by their steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from runs.engine.effects import PlannedStep, ToolResult
from runs.engine.observations import stringify_value, truncate_for_storage
from runs.engine.stopping import get_stop_message
from runs.models import AgentStep, Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.errors import RunsError
from runs.services.runs.start_child import start_child_run
from runs.services.spec.freeze import AGENT_KIND
from runs.store.claims import ClaimedRun, LeaseLost
from runs.store.commits import commit_outcome, increment_seq, persist, raise_if_canceled
from runs.store.sanitizer import Sanitizer
from runs.store.transitions import transition
from runs.worker.provider_wait import RunSuspended
from tools.spec import ToolSpec

Status = AgentStep.Status
OPEN_CALL_STATUSES = (Status.PLANNED, Status.STARTED)

STOP_REASON_PHRASES: dict[str, str] = {
    Run.StopReason.ITERATIONS: "it reached its limit of rounds",
    Run.StopReason.TIME: "it reached its limit of working time",
    Run.StopReason.TOKENS: "it used up its budget of tokens",
    Run.StopReason.COST: "it used up its budget of money",
    Run.StopReason.LOOP: "it repeated the same step without any change",
    Run.StopReason.EXPIRED: "nobody approved one of its calls in time",
}


class ChildAnswer(NamedTuple):
    """What the model reads about an ended child."""

    text: str
    failed: bool = False


class AgentCall(NamedTuple):
    row: AgentStep
    spec: ToolSpec


def is_agent_call(plan: PlannedStep) -> bool:
    return plan.tool is not None and plan.tool.kind == AGENT_KIND


@dataclass
class AgentCalls:
    """The agents called in one round of a run."""

    run: Run
    claim: ClaimedRun
    sanitizer: Callable[[], Sanitizer]
    calls: list[AgentCall]
    notes: dict[int, str]
    """Text the model reads before the result, by step."""

    def start(self) -> None:
        """Start missing children; steps of refused ones are answered."""
        for row, spec in self.calls:
            if row.status in OPEN_CALL_STATUSES:
                self.claim.raise_if_ended()
                self._start(row, spec)

    def _start(self, row: AgentStep, spec: ToolSpec) -> None:
        try:
            persist(
                self.claim, lambda: start_child_run(self.run, self.claim, row, spec)
            )
        except RunsError as refused:
            self._commit_answer(row, spec, ChildAnswer(str(refused), failed=True), None)

    def finish(self) -> None:
        """Answer the steps of ended children; raise `RunSuspended` if any is left."""
        self.commit_finished()
        while any(row.status in OPEN_CALL_STATUSES for row, _ in self.calls):
            if persist(self.claim, self._suspend):
                raise RunSuspended
            self.commit_finished()

    def commit_finished(self) -> None:
        waiting = {
            row.pk: call
            for call in self.calls
            if (row := call.row).status in OPEN_CALL_STATUSES
        }
        if not waiting:
            return
        children = Run.objects.filter(parent_step__in=waiting)
        for child in children.select_related("agent", "canceled_by"):
            call = waiting.pop(child.parent_step_id or 0)
            if child.is_over:
                self._commit_answer(
                    call.row, call.spec, build_child_answer(child), child
                )
        for call in waiting.values():  # the child was deleted
            gone = ChildAnswer("The run of this agent was deleted.", failed=True)
            self._commit_answer(call.row, call.spec, gone, None)

    def _suspend(self) -> bool:
        """Suspend the parent; False if no child is left to wait for."""
        increment_seq(self.claim)
        raise_if_canceled(self.claim)
        steps = [row.pk for row, _ in self.calls if row.status in OPEN_CALL_STATUSES]
        children = Run.objects.filter(
            parent_step__in=steps, status__in=UNFINISHED_STATUSES
        )
        if not children.exists():
            return False
        if not transition(self.run, to=Run.Status.WAITING, fence=self.claim.fence):
            raise LeaseLost
        return True

    def _commit_answer(
        self, row: AgentStep, spec: ToolSpec, message: ChildAnswer, child: Run | None
    ) -> None:
        """Commit the observation; waiting for a child is not working time."""
        sanitizer = self.sanitizer()
        before = self.notes.get(row.pk)
        text = f"{before}\n{message.text}" if before else message.text
        is_output = spec.return_direct and not message.failed and child is not None
        result = ToolResult(
            observation=truncate_for_storage(sanitizer.text(text)),
            failed=message.failed,
            value=sanitizer.json(child.output) if is_output and child else None,
            elapsed=0.0,
            tokens=child.input_tokens + child.output_tokens if child else 0,
            cost=float(child.cost) if child else 0.0,
        )
        commit_outcome(
            self.claim,
            row,
            result,
            keeps_value=spec.return_direct,
            seconds=get_child_seconds(child) if child else 0.0,
        )


def build_child_answer(child: Run) -> ChildAnswer:
    """Return the answer of an ended child, or why there is none."""
    name, output = child.agent.name, child.output
    said = "" if output in (None, "") else stringify_value(output)
    match child.status:
        case Run.Status.SUCCEEDED:
            return ChildAnswer(said)
        case Run.Status.LIMIT_REACHED:
            limit = STOP_REASON_PHRASES[child.stop_reason]
            why = f"The agent {name!r} was stopped: {limit}."
            if said and said != get_stop_message(child.stop_reason):  # type: ignore[arg-type]  # one of them
                return ChildAnswer(f"{why} Its result so far: {said}", failed=True)
            return ChildAnswer(f"{why} It has no result.", failed=True)
        case Run.Status.FAILED:
            return ChildAnswer(
                f"The agent {name!r} failed: {child.error_message}", failed=True
            )
    who = f" by {child.canceled_by.get_username()}" if child.canceled_by else ""
    return ChildAnswer(
        f"The agent {name!r} was canceled{who} before it had a result.", failed=True
    )


def get_child_seconds(child: Run) -> float:
    """Return how long a child took, including its time in the queue."""
    if child.ended_at is None:
        return 0.0
    return round((child.ended_at - child.created_at).total_seconds(), 4)
