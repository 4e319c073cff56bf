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
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs.llm.errors import ModelCallError
from runs.llm.retry import MAX_RETRY_AFTER
from runs.models import Provider, ProviderOutage, Run
from runs.models.runs import RunQuerySet
from runs.store.claims import worker_state
from runs.store.database_clock import db_time_from_now
from runs.store.transitions import transition

logger = logging.getLogger(__name__)

OUTAGE_CODES = frozenset({"transport", "overloaded", "timeout"})
"""Failures that other runs of the same model would meet, too."""
PROVIDER_CODES = frozenset({"transport"})
"""Those that runs of all its models would meet: no connection to the server."""

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


def find_open_outage(provider: Provider, model: str) -> ProviderOutage | None:
    """Return the outage that keeps runs of the model waiting.

    That of the whole provider comes before that of the model alone.
    """
    rows = query_outages(provider, model).filter(ended_at=None)
    return rows.order_by("model").first()


def query_outages(provider: Provider, model: str) -> "QuerySet[ProviderOutage]":
    """Return the outages of the whole provider, and of the model."""
    return ProviderOutage.objects.filter(provider=provider, model__in=("", model))


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
    provider: Provider, run: Run, failure: ModelCallError, *, message: str, model: str
) -> None:
    """Begin an outage, or plan the next test if `run` was the one that tested.

    Without a connection, the outage is that of the provider, else that of the model.
    `message` is that of the failure, without secrets.
    """
    worker_state.unavailable_providers |= {provider.pk}
    why = {"error_code": failure.code, "error_message": message}
    if _plan_next_probe(provider, run, failure, why):
        return
    model = "" if failure.code in PROVIDER_CODES else model
    pause = db_time_from_now(draw_pause(0.0, failure.retry_after))
    times = {"started_at": Now(), "probe_at": pause}
    first = ProviderOutage(provider=provider, model=model, **times, **why)
    ProviderOutage.objects.bulk_create([first], ignore_conflicts=True)
    rows = ProviderOutage.objects.filter(provider=provider, model=model)
    rows.filter(ended_at__isnull=False).update(
        ended_at=None, probe_run=None, **times, **why
    )


def _plan_next_probe(
    provider: Provider, run: Run, failure: ModelCallError, why: dict[str, str]
) -> bool:
    """Plan the next test after a failed one by `run`; False if it tested nothing."""
    tested = ProviderOutage.objects.filter(
        provider=provider, probe_run=run, ended_at=None
    )
    is_tested = False
    for outage in tested:
        lasted = (timezone.now() - outage.started_at).total_seconds()
        pause = db_time_from_now(draw_pause(lasted, failure.retry_after))
        rows = tested.filter(pk=outage.pk)
        is_tested |= bool(rows.update(probe_at=pause, probe_run=None, **why))
    return is_tested


def draw_pause(lasted: float, retry_after: float | None = None) -> float:
    """Return the seconds until the next test, with jitter.

    `lasted` is how long the outage has lasted, `retry_after` what the server asks for.
    """
    pause = compute_pause(lasted) * random.uniform(0.5, 1.0)  # noqa: S311  (jitter)
    return max(pause, min(retry_after or 0.0, MAX_RETRY_AFTER))


def compute_pause(lasted: float) -> float:
    """Return the longest pause after `lasted` seconds of an outage or a wait."""
    return min(max(lasted * PAUSE_SHARE, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


def end_outages(provider: Provider, model: str | None = None) -> None:
    """End the outages that a response disproves, and wake the first runs; never raise.

    A response of a model says nothing about another model of the provider. Without
    `model`, all outages end. After that, each reply wakes two more and each sweep the
    next ones, so that a server that has just started is not overrun.
    """
    try:
        rows = ProviderOutage.objects.filter(provider=provider)
        if model is not None:
            rows = query_outages(provider, model)
        has_ended = rows.filter(ended_at=None).update(ended_at=Now(), probe_run=None)
        if has_ended or rows.exists():
            wake_runs(provider, limit=WOKEN_AT_ONCE if has_ended else WOKEN_PER_REPLY)
    except (DatabaseError, InterfaceError):  # a later reply or test ends it
        logger.exception("the outage of provider %s was not ended", provider.pk)


def wake_runs(provider: Provider, *, limit: int) -> int:
    """Queue waiting runs without an open outage, the longest-waiting ones first."""
    rows, now = query_runs_to_wake(provider)[:limit], timezone.now()
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


def query_waiting_runs(provider: Provider, model: str = "") -> RunQuerySet:
    """Return the runs that wait, in the order in which they take turns.

    With `model`, only its runs.
    """
    rows = Run.objects.waiting_for_provider().filter(waiting_provider=provider)
    if model:
        rows = rows.filter(spec__body__model__model=model)
    return rows.order_by("queued_at", "pk")


def query_runs_to_wake(provider: Provider) -> RunQuerySet:
    """Return the waiting runs whose provider and model have no open outage."""
    rows = ProviderOutage.objects.filter(provider=provider, ended_at=None)
    models = list(rows.values_list("model", flat=True))
    runs = query_waiting_runs(provider)
    if not models:
        return runs
    if "" in models:
        return runs.none()
    return runs.exclude(spec__body__model__model__in=models)


class OpenOutage(NamedTuple):
    """An outage that has not ended, and how many runs wait for its end."""

    outage: ProviderOutage
    waiting_runs: int


def list_open_outages(
    providers: Iterable[Provider], user: User
) -> dict[int, list[OpenOutage]]:
    """Return the outages by the key of the provider, that of the whole one first.

    Counts the runs that the user may see.
    """
    outages = ProviderOutage.objects.filter(
        provider__in=[provider.pk for provider in providers], ended_at=None
    )
    found: dict[int, list[OpenOutage]] = {}
    for outage in outages.select_related("provider").order_by("provider", "model"):
        waiting = query_waiting_runs(outage.provider, outage.model)
        count = waiting.visible_to(user).order_by().count()
        found.setdefault(outage.provider_id, []).append(OpenOutage(outage, count))
    return found


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
        elif query_waiting_runs(outage.provider, outage.model).exists():
            wake_runs(outage.provider, limit=WOKEN_PER_SWEEP)
        else:
            ended = ProviderOutage.objects.filter(pk=outage.pk, ended_at__isnull=False)
            ended.delete()


def _wake_probe(outage: ProviderOutage) -> None:
    """Wake one run to test the provider, if a test is due.

    The one that has been queued least recently: a run whose own request is at fault
    does not test the provider twice in a row.
    """
    run = query_waiting_runs(outage.provider, outage.model).first()
    if run is None:
        return
    with transaction.atomic():
        if _take_probe(outage, outage.provider, run):
            _wake_run(run)
