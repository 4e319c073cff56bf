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
    asking: int
    """Of them, those that wait for an approval or a decision."""
    without_provider: int
    """Of them, those whose provider is unavailable or has asked for a pause."""
    seconds_left: float | None
    """None if no run has been scored yet, nothing is left, or nobody knows."""

    @property
    def over(self) -> int:
        return sum(self.ended.values())


def load_progress(experiment: Experiment) -> ExperimentProgress:
    over = experiment.cells.filter(state__in=(State.DONE, State.REFUSED)).order_by()
    ended = dict(over.values_list("candidate").annotate(Count("pk")))
    is_waiting = Q(run__status=Run.Status.WAITING)
    asking = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)
    is_away = Q(run__waiting_for="", run__waiting_since__isnull=False)
    started: dict[str, int] = experiment.cells.filter(state=State.STARTED).aggregate(
        unfinished=Count("pk"),
        running=Count("pk", filter=Q(run__status=Run.Status.RUNNING)),
        limited=Count("pk", filter=is_waiting & ~Q(run__waiting_for="")),
        asking=Count("pk", filter=Q(run__status__in=asking)),
        without_provider=Count("pk", filter=is_waiting & is_away),
    )
    left = experiment.total - sum(ended.values()) if experiment.is_running else 0
    if started["asking"] or started["without_provider"]:
        left = 0  # nobody knows how long that takes
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
