"""What an experiment has cost, and what its unfinished runs and verdicts will cost.

A verdict is what the judges of an experiment say of one run.
"""

from decimal import Decimal
from math import ceil
from typing import NamedTuple

from django.db.models import Avg, Count, Q, Sum

from runs.models import Experiment, ExperimentRun
from runs.models.runs import FINISHED_STATUSES

NOTHING = Decimal(0)
State = ExperimentRun.State


class Spending(NamedTuple):
    """Costs in dollars; what is unfinished is expected to cost as much as others."""

    budget: Decimal | None
    spent: Decimal
    """By ended and unfinished runs, and by verdicts."""
    unfinished: int
    """Runs that have not ended."""
    unfinished_cost: Decimal
    """The part of `spent` that is of them."""
    per_run: Decimal
    """The mean of ended runs; 0 before the first one."""
    per_verdict: Decimal
    """The mean of verdicts; 0 before the first one."""
    unscored: int
    """Runs that were started and have no verdict yet."""
    scored: int
    """Runs that have been scored."""

    @property
    def is_used(self) -> bool:
        """Whether the budget is spent."""
        return self.budget is not None and self.spent >= self.budget

    def count_verdicts(self, *, in_flight: int, most: int) -> int:
        """Return how many more verdicts the budget allows, up to `most`."""
        return self._count(self.per_verdict, in_flight=in_flight, most=most)

    def count_runs(self, *, most: int) -> int:
        """Return how many more runs the budget allows, each with its verdict."""
        per_cell = self.per_run + self.per_verdict
        return self._count(per_cell, in_flight=self.unscored, most=most)

    def _count(self, price: Decimal, *, in_flight: int, most: int) -> int:
        if self.budget is None:
            return most
        left = self.budget - self._expect(verdicts=in_flight)
        if left <= 0:
            return 0
        return min(most, ceil(left / price)) if price else most

    def _expect(self, *, verdicts: int) -> Decimal:
        """Return the cost after the unfinished runs and this number of verdicts."""
        runs = max(self.unfinished * self.per_run, self.unfinished_cost)
        return self.spent - self.unfinished_cost + runs + verdicts * self.per_verdict


def load_spending(experiment: Experiment) -> Spending:
    unscored = Q(state=State.STARTED)
    is_over = Q(run__status__in=FINISHED_STATUSES)
    unfinished = unscored & Q(run__isnull=False) & ~is_over
    found = experiment.cells.aggregate(
        ended=Sum("cost", filter=~unscored, default=NOTHING),
        # of those that are scored again, too
        judges=Sum("judge_cost", filter=unscored, default=NOTHING),
        runs=Sum("run__cost", filter=unscored, default=NOTHING),
        unscored=Count("pk", filter=unscored),
        unfinished=Count("pk", filter=unfinished),
        unfinished_cost=Sum("run__cost", filter=unfinished, default=NOTHING),
        per_run=Avg("run__cost", filter=is_over, default=NOTHING),
        per_verdict=Avg("judge_cost", filter=Q(judge_cost__gt=0), default=NOTHING),
        scored=Count("pk", filter=Q(state=State.DONE)),
    )
    spent = found.pop("ended") + found.pop("judges") + found.pop("runs")
    return Spending(budget=experiment.budget, spent=spent, **found)


def is_budget_used(experiment: Experiment) -> bool:
    """Whether runs and verdicts have cost the budget."""
    return experiment.budget is not None and load_spending(experiment).is_used
