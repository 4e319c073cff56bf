"""Outages of providers: runs wait, one at a time tests the provider, then all wake.

An outage that has not ended is an open circuit breaker, shared by all workers. See
docs/decisions/0023.
"""

import logging
import random
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Count, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs.llm.errors import ModelCallError
from runs.llm.retry import MAX_RETRY_AFTER
from runs.models import Provider, ProviderOutage, Run
from runs.services.providers.run_wait import get_outage
from runs.store.claims import worker_state
from runs.store.database_clock import db_time_from_now
from runs.store.transitions import transition

logger = logging.getLogger(__name__)

OUTAGE_CODES = frozenset({"transport", "overloaded", "timeout"})
"""Failures that every run of the provider would meet."""

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
PAUSE_SHARE = 0.25
"""A pause between two tests, as a share of the time that the outage has lasted."""
MIN_PROBE_SECONDS = 60.0
"""Seconds after which another run tests the provider, if a test has no result."""

WOKEN_AT_ONCE = 10
"""Runs that are woken when the provider responds again."""
WOKEN_PER_REPLY = 2
WOKEN_PER_SWEEP = 20


def find_open_outage(provider: Provider) -> ProviderOutage | None:
    """Return the outage of the provider that has not ended."""
    return ProviderOutage.objects.filter(provider=provider, ended_at=None).first()


def claim_probe(outage: ProviderOutage, provider: Provider, run: Run) -> bool:
    """Whether `run` is the one that may call the provider now."""
    return outage.probe_run_id == run.pk or _take_probe(outage, provider, run)


def _take_probe(outage: ProviderOutage, provider: Provider, run: Run) -> bool:
    """Let `run` test the provider, if a test is due or was abandoned."""
    rows = ProviderOutage.objects.filter(pk=outage.pk, ended_at=None)
    if outage.probe_run_id is None or is_run_active(outage.probe_run_id):
        rows = rows.filter(probe_at__lte=Now())
    seconds = max(provider.timeout, MIN_PROBE_SECONDS)
    # Unchanged since it was read: only one of several workers finds it so.
    unchanged = rows.filter(probe_at=outage.probe_at)
    return bool(unchanged.update(probe_run=run, probe_at=db_time_from_now(seconds)))


def is_run_active(run_id: int) -> bool:
    """Whether a worker has the run, or will soon."""
    statuses = [Run.Status.QUEUED, Run.Status.RUNNING]
    return Run.objects.filter(pk=run_id, status__in=statuses).exists()


def record_outage(
    provider: Provider, run: Run, failure: ModelCallError, *, message: str
) -> None:
    """Begin an outage, or plan the next test if `run` was the one that tested.

    `message` is that of the failure, without secrets.
    """
    worker_state.unavailable_providers |= {provider.pk}
    why = {"error_code": failure.code, "error_message": message}
    pause = db_time_from_now(draw_pause(0.0, failure.retry_after))
    first = ProviderOutage(provider=provider, started_at=Now(), probe_at=pause, **why)
    ProviderOutage.objects.bulk_create([first], ignore_conflicts=True)
    rows = ProviderOutage.objects.filter(provider=provider)
    rows.filter(ended_at__isnull=False).update(
        started_at=Now(), ended_at=None, probe_at=pause, probe_run=None, **why
    )
    outage = rows.filter(probe_run=run).first()
    if outage is not None:
        lasted = (timezone.now() - outage.started_at).total_seconds()
        pause = db_time_from_now(draw_pause(lasted, failure.retry_after))
        rows.filter(probe_run=run).update(probe_at=pause, probe_run=None, **why)


def draw_pause(lasted: float, retry_after: float | None = None) -> float:
    """Return the seconds until the next test, with jitter.

    `lasted` is how long the outage has lasted, `retry_after` what the server asks for.
    """
    pause = compute_pause(lasted) * random.uniform(0.5, 1.0)  # noqa: S311  (jitter)
    return max(pause, min(retry_after or 0.0, MAX_RETRY_AFTER))


def compute_pause(lasted: float) -> float:
    """Return the longest pause after `lasted` seconds of an outage or a wait."""
    return min(max(lasted * PAUSE_SHARE, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


def end_outage(provider: Provider) -> None:
    """End the outage, if there is one, and wake the first runs; never raise.

    After that, each reply wakes two more and each sweep the next ones, so that a
    server that has just started is not overrun.
    """
    try:
        rows = ProviderOutage.objects.filter(provider=provider)
        has_ended = rows.filter(ended_at=None).update(ended_at=Now(), probe_run=None)
        if has_ended or rows.exists():
            wake_runs(provider, limit=WOKEN_AT_ONCE if has_ended else WOKEN_PER_REPLY)
    except (DatabaseError, InterfaceError):  # a later reply or test ends it
        logger.exception("the outage of provider %s was not ended", provider.pk)


def wake_runs(provider: Provider, *, limit: int) -> int:
    """Queue runs that wait for the provider, the longest in wait first."""
    rows, now = query_waiting_runs(provider)[:limit], timezone.now()
    return sum(_wake_run(run) for run in rows if may_wake(run, now))


def may_wake(run: Run, now: datetime) -> bool:
    """Whether a run that was woken before, in vain, has paused for long enough.

    Replies to other models of the provider would wake it again and again.
    """
    since = run.waiting_since
    if since is None or run.queued_at <= since:
        return True
    pause = compute_pause((now - since).total_seconds())
    return (now - run.queued_at).total_seconds() >= pause


def query_waiting_runs(provider: Provider) -> "QuerySet[Run]":
    """Return the runs that wait, in the order in which they take turns."""
    rows = Run.objects.filter(
        waiting_provider=provider,
        waiting_since__isnull=False,
        status=Run.Status.WAITING,
    )
    return rows.order_by("queued_at", "pk")


class OpenOutage(NamedTuple):
    """An outage that has not ended, and how many runs wait for its end."""

    outage: ProviderOutage
    waiting_runs: int


def list_open_outages(
    providers: Iterable[Provider], user: User
) -> dict[int, OpenOutage]:
    """Return the outages by the key of the provider; counts runs the user may see."""
    found = [get_outage(provider) for provider in providers]
    outages = [one for one in found if one is not None and one.ended_at is None]
    if not outages:
        return {}
    rows = Run.objects.visible_to(user).filter(
        waiting_provider__in=[one.provider_id for one in outages],
        waiting_since__isnull=False,
        status=Run.Status.WAITING,
    )
    counted = rows.order_by().values("waiting_provider").annotate(count=Count("pk"))
    counts = dict(counted.values_list("waiting_provider", "count"))
    return {
        one.provider_id: OpenOutage(one, counts.get(one.provider_id, 0))
        for one in outages
    }


def _wake_run(run: Run) -> bool:
    return transition(
        run,
        to=Run.Status.QUEUED,
        only_from=(Run.Status.WAITING,),
        available_at=None,
    )


def sweep_outages() -> None:
    """Start the tests that are due, and wake runs whose provider responds again."""
    outages = list(ProviderOutage.objects.select_related("provider"))
    worker_state.unavailable_providers = frozenset(o.provider_id for o in outages)
    for outage in outages:
        if outage.ended_at is None:
            _wake_probe(outage)
        elif query_waiting_runs(outage.provider).exists():
            wake_runs(outage.provider, limit=WOKEN_PER_SWEEP)
        else:
            ended = ProviderOutage.objects.filter(pk=outage.pk, ended_at__isnull=False)
            ended.delete()


def _wake_probe(outage: ProviderOutage) -> None:
    """Wake one run to test the provider, if a test is due.

    The one that has been queued least recently: a run whose own request is at fault
    does not test the provider twice in a row.
    """
    run = query_waiting_runs(outage.provider).first()
    if run is None:
        return
    with transaction.atomic():
        if _take_probe(outage, outage.provider, run):
            _wake_run(run)
