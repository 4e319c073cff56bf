"""The calls of an experiment's runs, those of called agents included."""

from collections.abc import Iterator
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet

from runs.models import AgentStep, Experiment, Run

AnsweredBy = AgentStep.AnsweredBy


class CallCounts(NamedTuple):
    """Of calls that tools answered, and of those that nobody did."""

    made: int = 0
    held_back: int = 0
    not_recorded: int = 0


def count_calls(experiment: Experiment) -> CallCounts:
    """Count the calls; of an agent, only those that its run makes."""
    total = CallCounts()
    for runs in iter_run_levels(experiment):
        steps = AgentStep.objects.filter(run__in=runs, started_at__isnull=False)
        counts = steps.exclude(tool__startswith="_").aggregate(
            made=Count("pk", filter=Q(answered_by="", child=None)),
            held_back=Count("pk", filter=Q(answered_by=AnsweredBy.HELD_BACK)),
            not_recorded=Count("pk", filter=Q(answered_by=AnsweredBy.NO_RECORDING)),
        )
        total = CallCounts(
            *(a + b for a, b in zip(total, CallCounts(**counts), strict=True))
        )
    return total


def select_calls(experiment: Experiment, answered_by: str) -> QuerySet[AgentStep]:
    """Return the calls that were answered in one way, in the order of the runs."""
    below = Q()
    for runs in iter_run_levels(experiment):
        below |= Q(run__in=runs)
    rows = AgentStep.objects.filter(below, answered_by=answered_by)
    return rows.select_related("run__agent").order_by("run", "index")


def iter_run_levels(experiment: Experiment) -> Iterator[QuerySet[Run]]:
    """Yield the runs, then those of agents that they call, and so on."""
    runs = Run.objects.filter(experiment_run__experiment=experiment)
    yield runs
    if not experiment.candidates.exclude(called_specs={}).exists():
        return
    while (runs := Run.objects.filter(parent_step__run__in=runs)).exists():
        yield runs
