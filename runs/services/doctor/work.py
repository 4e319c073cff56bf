"""Checks of workers, the queue, stored secrets and providers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import connection
from django.db.models import DurationField, ExpressionWrapper, Max
from django.db.models.functions import Now

from runs.models import Provider, SiteRestore, Worker
from runs.services.doctor.finding import Finding
from runs.services.health.queue import filter_live_workers, measure_queue_health
from runs.services.providers.client import (
    ProviderTest,
    check_connection,
    get_provider_secrets,
)
from runs.store.database_clock import db_time_from_now
from tools.secrets import SecretUnreadable

MAX_SWEEP_SECONDS = 120.0
MAX_PROVIDERS = 100
CONCURRENT_TESTS = 8


def check_workers() -> Iterator[Finding]:
    """Report whether workers run and take what is queued."""
    queue = measure_queue_health()
    workers = queue.workers
    busy = sum(worker.running for worker in workers)
    threads = sum(worker.threads for worker in workers)
    if not workers:
        yield Finding(
            "workers",
            "error",
            f"No worker is running; {queue.queued} runs are queued.",
            f"Start one: {settings.START_COMMAND}, or "
            "celery -A agentsite worker -P threads",
        )
    elif queue.stuck:
        yield Finding(
            "workers",
            "error",
            f"{queue.stuck} runs should have been taken by a worker a minute ago.",
            "Check the logs of the workers, and that all use this REDIS_URL.",
        )
    else:
        yield Finding(
            "workers",
            "ok",
            f"{len(workers)} running, {busy} of {threads} threads are busy, "
            f"{queue.queued} runs are queued.",
        )


def check_restore() -> Iterator[Finding]:
    """Report a site that is paused since it was restored from a backup."""
    restore = SiteRestore.objects.unconfirmed().first()
    if restore is not None:
        yield Finding(
            "restore",
            "error",
            "The site is paused: it was restored from a backup.",
            "Confirm the restore in the dashboard, or run "
            f"{settings.MANAGE_COMMAND} confirm_restore.",
        )


def check_sweep() -> Iterator[Finding]:
    """Report whether some worker looks for lost and due runs."""
    age = ExpressionWrapper(Now() - Max("last_sweep"), output_field=DurationField())
    found = Worker.objects.order_by().aggregate(age=age)["age"]
    if found is not None and found.total_seconds() <= MAX_SWEEP_SECONDS:
        yield Finding("sweep", "ok", f"{max(found.total_seconds(), 0):.0f} s ago.")
        return
    if has_new_worker():
        yield Finding("sweep", "ok", "A worker has just started.")
        return
    yield Finding(
        "sweep",
        "error",
        "No worker has looked for lost and due runs"
        + ("." if found is None else f" for {found.total_seconds():.0f} s."),
        'Start a worker. If one runs, look for "a sweep failed" in its log.',
    )


def has_new_worker() -> bool:
    """Whether a live worker has had no time for a sweep and the heartbeat after it."""
    seconds = settings.SWEEP_SECONDS + settings.HEARTBEAT_SECONDS
    new = filter_live_workers().filter(started_at__gt=db_time_from_now(-seconds))
    return new.exists()


def check_stored_secrets() -> Iterator[Finding]:
    """Report stored keys that cannot be decrypted: after a restore without its keys."""
    unreadable = [one.slug for one in _list_providers() if not _is_readable(one)]
    if not unreadable:
        yield Finding("secrets", "ok", "The keys of all providers can be decrypted.")
        return
    yield Finding(
        "secrets",
        "error",
        f"The keys of these providers cannot be decrypted: {', '.join(unreadable)}.",
        "Restore the encryption keys, or enter the keys of the providers again.",
    )


def _is_readable(provider: Provider) -> bool:
    try:
        get_provider_secrets(provider)
    except SecretUnreadable:
        return False
    return True


def check_providers() -> Iterator[Finding]:
    """Report providers that do not respond; agents of others are not affected."""
    providers = [one for one in _list_providers() if _is_readable(one)]
    with ThreadPoolExecutor(CONCURRENT_TESTS) as threads:
        for provider, test in zip(
            providers, threads.map(_test_provider, providers), strict=True
        ):
            if test.ok:
                yield Finding("provider", "ok", f"{provider.slug}: {test.message}")
            else:
                yield Finding(
                    "provider",
                    "warning",
                    f"{provider.slug}: {test.message}",
                    "Start its server, correct the provider, or archive it.",
                )


def _list_providers() -> list[Provider]:
    rows = Provider.objects.filter(archived_at=None).select_related("owner")
    return list(rows.order_by("slug")[:MAX_PROVIDERS])


def _test_provider(provider: Provider) -> ProviderTest:
    try:
        return check_connection(provider)
    finally:
        connection.close()
