"""What a waiting run waits for, if that is its provider."""

from datetime import datetime, timedelta
from typing import NamedTuple

from runs.models import Provider, ProviderOutage, Run
from runs.services.providers.mask_address import (
    HIDDEN_ADDRESS,
    mask_provider_address,
    may_see_provider,
)


class RunWait(NamedTuple):
    """A wait for a provider that is unavailable, or asks for a pause."""

    provider: Provider
    name: str
    """With the model if only that is away; hidden if the owner may not see it."""
    next_attempt_at: datetime | None
    """When a model call is tried next; null while one is, and after the recovery."""
    until: datetime | None = None
    """When the run gives up; null if the wait is one of a few quick retries."""
    tested_by: int | None = None
    """The run that tests the provider now."""
    error: str = ""
    """Why the provider is unavailable, from the last attempt of any run."""

    @property
    def is_hidden(self) -> bool:
        return self.name == HIDDEN_ADDRESS


def get_run_wait(run: Run) -> RunWait | None:
    """Return the wait of a waiting run; None if it waits for a limit or another run."""
    provider = run.waiting_provider
    if run.status != Run.Status.WAITING or provider is None or run.waiting_for:
        return None
    is_visible = may_see_provider(run, provider)
    wait = RunWait(
        provider, provider.name if is_visible else HIDDEN_ADDRESS, run.available_at
    )
    if run.waiting_since is None:
        return wait
    until = run.waiting_since + timedelta(minutes=provider.outage_minutes)
    outage = find_outage(run, provider)
    if outage is None:
        return wait._replace(until=until)
    if outage.model and is_visible:
        wait = wait._replace(name=f"{provider.name} ({outage.model})")
    if outage.ended_at is not None:
        return wait._replace(next_attempt_at=None, until=until)
    error = outage.error_message
    return wait._replace(
        next_attempt_at=None if outage.probe_run_id else outage.probe_at,
        until=until,
        tested_by=outage.probe_run_id,
        error=error if is_visible else mask_provider_address(error, provider),
    )


def find_outage(run: Run, provider: Provider) -> ProviderOutage | None:
    """Return the outage that the run waits for, of the provider or of its model.

    Ended ones stay a while. Reads `provider.outages`, which lists prefetch.
    """
    model = (run.spec.body.get("model") or {}).get("model", "")
    outages = [one for one in provider.outages.all() if one.model in ("", model)]
    outages.sort(key=lambda one: (one.ended_at is not None, one.model))
    return outages[0] if outages else None
