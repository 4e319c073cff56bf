"""What a waiting run waits for, if that is its provider."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.core.exceptions import ObjectDoesNotExist

from runs.models import Provider, ProviderOutage, Run


class RunWait(NamedTuple):
    """A wait for a provider that is unavailable, or asks for a pause."""

    provider: Provider
    next_attempt_at: datetime | None
    """When a model call is tried next; null while one is, and after the recovery."""
    until: datetime | None = None
    """When the run gives up; null if the wait is one of a few quick retries."""
    tested_by: int | None = None
    """The run that tests the provider now."""
    error: str = ""
    """Why the provider is unavailable, from the last attempt of any run."""


def get_run_wait(run: Run) -> RunWait | None:
    """Return the wait of a waiting run; None if it waits for another run."""
    provider = run.waiting_provider
    if run.status != Run.Status.WAITING or provider is None:
        return None
    if run.waiting_since is None:
        return RunWait(provider, run.available_at)
    until = run.waiting_since + timedelta(minutes=provider.outage_minutes)
    outage = get_outage(provider)
    if outage is None:
        return RunWait(provider, run.available_at, until)
    if outage.ended_at is not None:
        return RunWait(provider, None, until)
    tested_by, error = outage.probe_run_id, outage.error_message
    next_at = None if tested_by else outage.probe_at
    return RunWait(provider, next_at, until, tested_by, error)


def get_outage(provider: Provider) -> ProviderOutage | None:
    """Return the outage of the provider, if there is one; ended ones stay a while."""
    try:
        return provider.outage
    except ObjectDoesNotExist:
        return None
