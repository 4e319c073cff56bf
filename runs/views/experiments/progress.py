"""How far an experiment is, and what it waits for."""

from typing import NamedTuple

from django.db.models import Count, Q
from django.utils import timezone

from runs.models import Experiment, ExperimentRun, Run

PACE_RUNS = 50
"""The latest runs say how long the others take."""
State = ExperimentRun.State


class ExperimentProgress(NamedTuple):
    """Numbers of runs, and the estimated seconds to the end."""

    ended: dict[int, int]
    """Runs of each candidate that have ended."""
    unfinished: int
    """Started and not scored yet."""
    running: int
    """Of them, those that a worker executes."""
    limited: int
    """Of them, those that wait for a limit of their agent or provider."""
    seconds_left: float | None
    """None if no run has been scored yet, or nothing is left."""

    @property
    def over(self) -> int:
        return sum(self.ended.values())


def load_progress(experiment: Experiment) -> ExperimentProgress:
    over = experiment.cells.filter(state__in=(State.DONE, State.REFUSED)).order_by()
    ended = dict(over.values_list("candidate").annotate(Count("pk")))
    is_limited = Q(run__status=Run.Status.WAITING) & ~Q(run__waiting_for="")
    started: dict[str, int] = experiment.cells.filter(state=State.STARTED).aggregate(
        unfinished=Count("pk"),
        running=Count("pk", filter=Q(run__status=Run.Status.RUNNING)),
        limited=Count("pk", filter=is_limited),
    )
    left = experiment.total - sum(ended.values()) if experiment.is_running else 0
    return ExperimentProgress(
        ended, **started, seconds_left=estimate_seconds(experiment, runs=left)
    )


def estimate_seconds(experiment: Experiment, *, runs: int) -> float | None:
    """Return how long so many runs take, by those that were scored last."""
    if not runs:
        return None
    scored = experiment.cells.filter(state=State.DONE, run__isnull=False)
    latest = list(
        scored.order_by("-run_id").values_list("run__created_at", flat=True)[:PACE_RUNS]
    )
    if not latest:
        return None
    return runs * (timezone.now() - latest[-1]).total_seconds() / len(latest)
