"""Limits on the runs that workers execute at once: per user, agent and provider.

A run without limits is claimed by one statement. One with limits is counted under a
lock, so that the limit holds across all workers. If it is full, the run waits without
a message and without a thread; a run that leaves the status `running` wakes the next
one, and sweeps wake what got lost.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

from runs.engine.types import AgentSpec
from runs.models import Provider, Run, Worker
from runs.store.transitions import claim_run, transition

COLUMNS = {
    Run.Limit.USER: "owner_id",
    Run.Limit.AGENT: "agent_id",
    Run.Limit.PROVIDER: "provider_key",
}
LOCK_CLASSES = {limit: 7_310 + number for number, limit in enumerate(COLUMNS)}
"""First halves of the keys of PostgreSQL's advisory locks."""
WOKEN_AT_ONCE = 100


class RunLimit(NamedTuple):
    """How many runs of one user, agent or provider may run at once."""

    kind: Run.Limit
    key: int
    most: int

    @property
    def runs(self) -> QuerySet[Run]:
        return Run.objects.filter(**{COLUMNS[self.kind]: self.key})

    @property
    def waiting_runs(self) -> QuerySet[Run]:
        """Those that wait for this very limit, in the order of their turns."""
        rows = self.runs.filter(status=Run.Status.WAITING, waiting_for=self.kind)
        return rows.order_by("pk")

    def count_running(self) -> int:
        return self.runs.filter(status=Run.Status.RUNNING).count()


class LimitedRun(NamedTuple):
    """A claimed run, and the limits of which it occupies a place."""

    run: Run
    limits: tuple[RunLimit, ...]


def build_limit_columns(spec: AgentSpec) -> dict[str, Any]:
    """Return the columns of a new run by which limits count it."""
    return {
        "agent_limit": spec.executor.max_concurrent_runs,
        "provider_key": spec.model.provider_id,
    }


def find_limits(run: Run) -> tuple[RunLimit, ...]:
    rows = Provider.objects.filter(pk=run.provider_key or 0)
    most = {
        Run.Limit.USER: settings.USER_CONCURRENT_RUNS or None,
        Run.Limit.AGENT: run.agent_limit,
        Run.Limit.PROVIDER: rows.values_list("max_concurrent_runs", flat=True).first(),
    }
    return tuple(
        RunLimit(kind, getattr(run, column), number)
        for kind, column in COLUMNS.items()
        if (number := most[kind]) is not None
    )


def claim_limited_run(run_id: int, worker: Worker | None) -> LimitedRun | None:
    """Claim a queued run that has limits; None if it is not available or must wait."""
    with transaction.atomic():
        run = Run.objects.filter(pk=run_id, status=Run.Status.QUEUED).first()
        limits = find_limits(run) if run is not None else ()
        if run is None or not limits:
            return None
        _lock(limits)
        full = next((each for each in limits if _is_full(each, run)), None)
        if full is not None:
            _wait_for_limit(run, full)
            return None
        claimed = claim_run(run_id, worker, is_within_limits=True)
    return LimitedRun(claimed, limits) if claimed is not None else None


def wake_limited_runs(limits: Iterable[RunLimit]) -> None:
    """Queue as many waiting runs as there are free places, the oldest first."""
    for limit in limits:
        free = limit.most - limit.count_running()
        for run in limit.waiting_runs[:WOKEN_AT_ONCE]:
            if free <= 0:
                break
            free -= wake_limited_run(run)


def wake_limited_run(run: Run) -> bool:
    return transition(
        run,
        to=Run.Status.QUEUED,
        only_from=(Run.Status.WAITING,),
        waiting_for="",
        waiting_provider=run.waiting_provider_id if run.waiting_since else None,
    )


def sweep_limits() -> None:
    """Wake runs for which there is a place, or whose limit is gone."""
    rows = Run.objects.filter(status=Run.Status.WAITING, waiting_for__in=list(COLUMNS))
    for kind in set(rows.order_by().values_list("waiting_for", flat=True).distinct()):
        column = COLUMNS[Run.Limit(kind)]
        some = rows.filter(waiting_for=kind).order_by()
        for key in some.values_list(column, flat=True).distinct():
            _sweep_limit(kind, some.filter(**{column: key}).order_by("pk"))


def _sweep_limit(kind: str, waiting: QuerySet[Run]) -> None:
    first = waiting.first()
    limits = [each for each in find_limits(first) if each.kind == kind] if first else []
    wake_limited_runs(limits)
    if not limits:
        for run in waiting[:WOKEN_AT_ONCE]:
            wake_limited_run(run)


def _lock(limits: Iterable[RunLimit]) -> None:
    """Let one claim at a time count, until the end of the transaction.

    SQLite has one writer at a time anyway. The order of the locks is always the same.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for limit in limits:
            lock = [LOCK_CLASSES[limit.kind], limit.key % 2**31]
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", lock)


def _is_full(limit: RunLimit, run: Run) -> bool:
    """Whether no place is left, or only for runs that have waited for longer."""
    ahead = limit.waiting_runs.filter(pk__lt=run.pk)[: limit.most].count()
    return limit.count_running() + ahead >= limit.most


def _wait_for_limit(run: Run, limit: RunLimit) -> None:
    is_provider = limit.kind == Run.Limit.PROVIDER
    transition(
        run,
        to=Run.Status.WAITING,
        only_from=(Run.Status.QUEUED,),
        waiting_for=limit.kind,
        available_at=None,
        waiting_provider=limit.key if is_provider else run.waiting_provider_id,
    )
