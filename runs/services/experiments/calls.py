"""The calls of an experiment's runs, those of called agents included."""

from collections.abc import Iterator

from django.db.models import Count, Q, QuerySet

from runs.models import AgentStep, Experiment, Run

HELD_BACK = Q(answered_by=AgentStep.AnsweredBy.HELD_BACK)


def count_calls(experiment: Experiment) -> tuple[int, int]:
    """Return how many calls were made, and how many were held back.

    The call of an agent is not counted; those that its run makes are.
    """
    made = held_back = 0
    for runs in iter_run_levels(experiment):
        steps = AgentStep.objects.filter(run__in=runs, started_at__isnull=False)
        counts = steps.exclude(tool__startswith="_").aggregate(
            made=Count("pk", filter=Q(answered_by="", child=None)),
            held_back=Count("pk", filter=HELD_BACK),
        )
        made += counts["made"]
        held_back += counts["held_back"]
    return made, held_back


def select_held_back_calls(experiment: Experiment) -> QuerySet[AgentStep]:
    """Return what would have been sent, in the order of the runs."""
    below = Q()
    for runs in iter_run_levels(experiment):
        below |= Q(run__in=runs)
    rows = AgentStep.objects.filter(below, HELD_BACK)
    return rows.select_related("run__agent").order_by("run", "index")


def iter_run_levels(experiment: Experiment) -> Iterator[QuerySet[Run]]:
    """Yield the runs, then those of agents that they call, and so on."""
    runs = Run.objects.filter(experiment_run__experiment=experiment)
    yield runs
    if not experiment.candidates.exclude(called_specs={}).exists():
        return
    while (runs := Run.objects.filter(parent_step__run__in=runs)).exists():
        yield runs
