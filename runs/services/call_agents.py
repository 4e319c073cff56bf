"""Agents called as tools: their runs side by side, and a parent that waits for them.

A waiting parent holds no worker. The end of its last child puts it back into the
queue; whoever takes it then finds the children by their steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from runs.engine.effects import PlannedStep, ToolResult
from runs.engine.observations import cut_for_store, text_of
from runs.engine.stopping import sentence_of
from runs.models import AgentStep, Run
from runs.models.runs import UNFINISHED
from runs.services.ask_model import Parked
from runs.services.commits import (
    commit_outcome,
    persist,
    raise_seq,
    refuse_if_cancelled,
)
from runs.services.errors import RunsError
from runs.services.freeze_agent import AGENT_KIND
from runs.services.held import Held, LeaseLost
from runs.services.move import move
from runs.services.redact import Choke
from runs.services.start_child import start_child
from tools.spec import ToolSpec

Status = AgentStep.Status
OPEN = (Status.PLANNED, Status.STARTED)

STOPPED: dict[str, str] = {
    Run.StopReason.ITERATIONS: "it reached its limit of rounds",
    Run.StopReason.TIME: "it reached its limit of working time",
    Run.StopReason.TOKENS: "it used up its budget of tokens",
    Run.StopReason.COST: "it used up its budget of money",
    Run.StopReason.LOOP: "it repeated the same step without any change",
    Run.StopReason.EXPIRED: "nobody approved one of its calls in time",
}


class Told(NamedTuple):
    """What the model is told of an ended child."""

    text: str
    failed: bool = False


class AgentCall(NamedTuple):
    """One step that calls an agent."""

    row: AgentStep
    spec: ToolSpec


def is_agent_call(plan: PlannedStep) -> bool:
    """Whether a planned step calls another agent."""
    return plan.tool is not None and plan.tool.kind == AGENT_KIND


@dataclass
class AgentCalls:
    """The agents called in one round of a run."""

    run: Run
    held: Held
    choke: Callable[[], Choke]
    calls: list[AgentCall]
    told: dict[int, str]
    """What the model is told before the result, by step."""

    def start(self) -> None:
        """Start the children that are not there yet; those refused are answered."""
        for row, spec in self.calls:
            if row.status in OPEN:
                self.held.check()
                self._start(row, spec)

    def _start(self, row: AgentStep, spec: ToolSpec) -> None:
        try:
            persist(self.held, lambda: start_child(self.run, self.held, row, spec))
        except RunsError as refused:
            self._keep(row, spec, Told(str(refused), failed=True), None)

    def finish(self) -> None:
        """Answer the steps of children that are over; raise `Parked` for the others."""
        self.answer()
        while any(row.status in OPEN for row, _ in self.calls):
            if persist(self.held, self._park):
                raise Parked
            self.answer()

    def answer(self) -> None:
        """Write down what became of the children that are over."""
        waiting = {
            row.pk: call for call in self.calls if (row := call.row).status in OPEN
        }
        if not waiting:
            return
        children = Run.objects.filter(parent_step__in=waiting)
        for child in children.select_related("agent", "cancelled_by"):
            call = waiting.pop(child.parent_step_id or 0)
            if child.is_over:
                self._keep(call.row, call.spec, told_of(child), child)
        for call in waiting.values():  # somebody has deleted the child
            gone = Told("The run of this agent does not exist any more.", failed=True)
            self._keep(call.row, call.spec, gone, None)

    def _park(self) -> bool:
        """Put the parent aside; False where no child is left to wait for."""
        raise_seq(self.held)
        refuse_if_cancelled(self.held)
        steps = [row.pk for row, _ in self.calls if row.status in OPEN]
        children = Run.objects.filter(parent_step__in=steps, status__in=UNFINISHED)
        if not children.exists():
            return False
        if not move(self.run, to=Run.Status.WAITING, fence=self.held.fence):
            raise LeaseLost
        return True

    def _keep(
        self, row: AgentStep, spec: ToolSpec, told: Told, child: Run | None
    ) -> None:
        """Commit the observation; waiting for a child is no working time."""
        choke = self.choke()
        before = self.told.get(row.pk)
        text = f"{before}\n{told.text}" if before else told.text
        is_output = spec.return_direct and not told.failed and child is not None
        result = ToolResult(
            observation=cut_for_store(choke.text(text)),
            failed=told.failed,
            value=choke.json(child.output) if is_output and child else None,
            elapsed=0.0,
            tokens=child.input_tokens + child.output_tokens if child else 0,
            cost=float(child.cost) if child else 0.0,
        )
        commit_outcome(
            self.held,
            row,
            result,
            keeps_value=spec.return_direct,
            took=seconds_of(child) if child else 0.0,
        )


def told_of(child: Run) -> Told:
    """Return the answer of an ended child, or in plain words why there is none."""
    name, output = child.agent.name, child.output
    said = "" if output in (None, "") else text_of(output)
    match child.status:
        case Run.Status.SUCCEEDED:
            return Told(said)
        case Run.Status.STOPPED:
            why = f"The agent {name!r} was stopped: {STOPPED[child.stop_reason]}."
            if said and said != sentence_of(child.stop_reason):  # type: ignore[arg-type]  # one of them
                return Told(f"{why} What it had until then: {said}", failed=True)
            return Told(f"{why} It has no answer.", failed=True)
        case Run.Status.FAILED:
            return Told(
                f"The agent {name!r} failed: {child.error_message}", failed=True
            )
    who = f" by {child.cancelled_by.get_username()}" if child.cancelled_by else ""
    return Told(
        f"The agent {name!r} was stopped{who} before it had an answer.", failed=True
    )


def seconds_of(child: Run) -> float:
    """Return how long a child took, its wait in the queue included."""
    if child.ended_at is None:
        return 0.0
    return round((child.ended_at - child.created_at).total_seconds(), 4)
