"""Opening the provider a run was frozen with, if its agent's owner still may use it."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from runs.engine.types import AgentSpec
from runs.llm.base import LLM
from runs.models import Provider, Run
from runs.services.errors import RunsError
from runs.services.open_provider import open_llm_of, secrets_of
from runs.services.prepared import Prepared
from tools.secrets import SecretUnreadable

BY_ID = Prepared(lambda pk: Provider.objects.filter(pk=pk), int)


class ProviderRefused(RunsError):
    """The provider cannot be used for this run."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Opened:
    """A connection, and the secrets that must not be stored with what comes of it."""

    llm: LLM
    secrets: tuple[str, ...]


def open_provider_of(run: Run, spec: AgentSpec) -> Opened:
    """Return a connection to the run's provider; raise `ProviderRefused`."""
    provider = usable_provider(spec, owner=run.agent.owner)
    try:
        return Opened(llm=open_llm_of(provider), secrets=secrets_of(provider))
    except SecretUnreadable as unreadable:
        raise ProviderRefused("secret_unreadable", str(unreadable)) from None


def usable_provider(spec: AgentSpec, *, owner: User) -> Provider:
    """Return the provider of `spec`; raise `ProviderRefused`.

    `owner` is the agent's, by whose rights it is used.
    """
    slug = spec.model.provider
    provider = BY_ID.first(spec.model.provider_id or 0)
    if provider is None:
        raise ProviderRefused("provider_gone", f"The provider {slug!r} is gone.")
    if provider.archived_at is not None:
        raise ProviderRefused(
            "provider_archived",
            f"The provider {slug!r} is archived. Take it out of the archive, or give "
            "the agent another one.",
        )
    if not may_use(owner, provider):
        raise ProviderRefused(
            "not_allowed",
            f"{owner.get_username()}, who owns the agent, may not use the provider "
            f"{slug!r} any more.",
        )
    return provider


def may_use(owner: User, provider: Provider) -> bool:
    """Whether `owner` may use the provider; one's own needs no look at groups."""
    if owner.is_superuser or provider.owner_id == owner.pk:
        return True
    return Provider.objects.usable_by(owner).filter(pk=provider.pk).exists()
