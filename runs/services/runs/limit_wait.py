"""What a run waits for that may not continue yet: a limit."""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from runs.models import Run
from runs.services.providers.mask_address import HIDDEN_ADDRESS, may_see_provider


class LimitWait(NamedTuple):
    """A limit that is full."""

    kind: Run.Limit
    name: str
    """Of the user, agent or provider; hidden if the run's owner may not see it."""
    most: int | None
    """The limit; null if it was removed, so that the run continues soon."""
    provider: str | None = None
    """Slug of the provider, if the limit is one of its and the owner may see it."""
    next_attempt_at: datetime | None = None


def get_limit_wait(run: Run) -> LimitWait | None:
    """Return the limit that a waiting run waits for; None if it waits otherwise."""
    if run.status != Run.Status.WAITING or not run.waiting_for:
        return None
    kind = Run.Limit(run.waiting_for)
    if kind == Run.Limit.USER:
        most = settings.USER_CONCURRENT_RUNS or None
        return LimitWait(kind, run.owner.get_username(), most)
    if kind == Run.Limit.AGENT:
        return LimitWait(kind, run.agent.name, run.agent_limit)
    return _get_provider_wait(run, kind)


def _get_provider_wait(run: Run, kind: Run.Limit) -> LimitWait | None:
    provider = run.waiting_provider
    if provider is None:  # it was deleted
        return None
    is_visible = may_see_provider(run, provider)
    most = {
        Run.Limit.REQUESTS: provider.requests_per_minute,
        Run.Limit.TOKENS: provider.tokens_per_minute,
    }.get(kind, provider.max_concurrent_runs)
    return LimitWait(
        kind,
        provider.name if is_visible else HIDDEN_ADDRESS,
        most,
        provider=provider.slug if is_visible else None,
        next_attempt_at=run.available_at,
    )
