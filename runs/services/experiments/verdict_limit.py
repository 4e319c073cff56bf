"""Whether the budget of an experiment allows its judges to be asked about a run."""

from collections.abc import Sequence
from typing import Literal

from runs.models import EvaluatorRevision, Experiment, ExperimentRun
from runs.services.evaluation.judge_requests import is_judge
from runs.services.experiments.score_cells import find_run_problem
from runs.services.experiments.spending import load_spending

VerdictDecision = Literal["ask", "wait", "skip"]


class VerdictLimit:
    """The budget of an experiment, as far as its judges are concerned.

    A run that is scored again after the end of the experiment is judged anyway: a
    person has asked for it.
    """

    def __init__(
        self, experiment: Experiment, revisions: Sequence[EvaluatorRevision]
    ) -> None:
        self.experiment = experiment
        has_ended = experiment.status == Experiment.Status.DONE
        has_budget = experiment.budget is not None and not has_ended
        self.is_active = has_budget and any(map(is_judge, revisions))

    def count_runs(self, *, in_flight: int, most: int) -> int:
        """Return how many runs may be scored now, while others are in flight."""
        if not self.is_active:
            return most
        spending = load_spending(self.experiment)
        if spending.is_used:
            return 0 if self.experiment.is_running else most
        return spending.count_verdicts(in_flight=in_flight, most=most)

    def decide(self, cell: ExperimentRun, *, in_flight: int) -> VerdictDecision:
        """Return what is done with a run; it waits until verdicts in flight are made.

        When the budget is used up, it waits until the experiment has stopped, and is
        then scored without its judges.
        """
        if not self.is_active or cell.run is None or find_run_problem(cell.run):
            return "ask"
        spending = load_spending(self.experiment)
        if spending.is_used:
            return "wait" if self.experiment.is_running else "skip"
        may = spending.count_verdicts(in_flight=in_flight, most=1)
        return "ask" if may else "wait"
