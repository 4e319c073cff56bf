"""Where a run is forked: what is kept before it, and what may be edited."""

from dataclasses import dataclass

from django.db.models import F
from django.utils.translation import gettext as _

from runs.models import AgentStep, ModelCall, Run
from runs.services.errors import CannotFork

MAX_ROW = 2_000_000_000


@dataclass(frozen=True)
class ForkPoint:
    """One row of a run from which a fork continues."""

    run: Run
    row: int
    """The row's number on the run page, from 1."""
    number: int
    """Number of the model call to repeat, or of the step's call."""
    at_index: int
    """How many steps there were when that call was made."""
    call: ModelCall | None = None
    """None if the run ended before the model replied."""
    step: AgentStep | None = None

    @property
    def is_end(self) -> bool:
        """Whether the run ended here without a reply."""
        return self.call is None

    @property
    def siblings(self) -> list[AgentStep]:
        """All steps of the reply, if the row is one of them."""
        if self.step is None:
            return []
        rows = AgentStep.objects.filter(run=self.run, model_call=self.call)
        return list(rows.order_by("index"))

    @property
    def open_siblings(self) -> list[AgentStep]:
        """Other calls of the same reply without a result; a fork runs them."""
        return [
            row
            for row in self.siblings
            if not row.is_answered and row.pk != getattr(self.step, "pk", None)
        ]


def load_fork_point(run: Run, row: int) -> ForkPoint:
    """Return the point at the row `row`; raise `CannotFork` if there is none."""
    if run.is_imported:
        raise CannotFork(_("Another program executed this run. It cannot be forked."))
    if not 0 < row < MAX_ROW:
        raise CannotFork(
            _("Run %(run)s has no step %(step)s to fork from.")
            % {"run": run.pk, "step": row}
        )
    calls = ModelCall.objects.filter(run=run)
    call = calls.filter(number=row - 1 - F("at_index")).first()
    if call is not None:
        return ForkPoint(run, row, call.number, call.at_index, call)
    step = (
        AgentStep.objects.filter(run=run, index=row - 2 - F("model_call__number"))
        .select_related("model_call")
        .first()
    )
    if step is not None:
        asked = step.model_call
        return ForkPoint(run, row, asked.number, asked.at_index, asked, step)
    if row == get_end_row(run) and can_fork_at_end(run):
        number = get_end_call_number(run)
        return ForkPoint(run, row, number, run.next_index)
    raise CannotFork(
        _("Run %(run)s has no step %(step)s to fork from.")
        % {"run": run.pk, "step": row}
    )


def get_end_row(run: Run) -> int:
    """Return the number of the row after the last one."""
    return run.next_number + run.next_index + 1


def can_fork_at_end(run: Run) -> bool:
    """Whether a fork can continue after the last row: the run has no answer."""
    return run.is_over and run.status != Run.Status.SUCCEEDED


def get_end_call_number(run: Run) -> int:
    """Return the number of the call to make after the last step.

    A last reply without a step led to the end, and is requested again.
    """
    last = ModelCall.objects.filter(run=run).order_by("-number").first()
    led_nowhere = (
        last is not None
        and last.at_index == run.next_index
        and last.purpose != ModelCall.Purpose.SUMMARY
    )
    return last.number if led_nowhere and last is not None else run.next_number
