"""Open the provider of a run, if its agent's owner may still use it."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from runs.engine.types import AgentSpec
from runs.llm.base import LLM
from runs.models import Provider, Run
from runs.services.errors import RunsError
from runs.services.providers.client import get_provider_secrets, open_provider_llm
from runs.services.providers.mask_address import mask_provider_address, may_see_provider
from runs.store.fast_select import select_row
from runs.store.sanitizer import MIN_UNGUESSABLE_LENGTH
from tools.secrets import SecretUnreadable
from tools.text.translatable import translatable


class ProviderRefused(RunsError):
    """The provider cannot be used for this run."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class ProviderConnection:
    """A connection, and the secrets that must not be stored."""

    provider: Provider
    llm: LLM
    secrets: tuple[str, ...]
    """Those that errors of the server must not show."""
    reply_secrets: tuple[str, ...]
    """Those that replies and results must not show; the run's owner chooses these."""


def open_run_provider(run: Run, spec: AgentSpec) -> ProviderConnection:
    """Return a connection to the run's provider; raise `ProviderRefused`."""
    try:
        provider = get_usable_provider(spec, owner=run.agent.owner)
    except ProviderRefused as refused:
        row = Provider.objects.filter(pk=spec.model.provider_id or 0).first()
        if row is None or may_see_provider(run, row):
            raise
        message = mask_provider_address(str(refused), row)
        raise ProviderRefused(refused.code, message) from None
    try:
        secrets = get_provider_secrets(provider)
        shortest = 0 if provider.owner_id == run.owner_id else MIN_UNGUESSABLE_LENGTH
        return ProviderConnection(
            provider=provider,
            llm=open_provider_llm(provider),
            secrets=secrets,
            reply_secrets=tuple(one for one in secrets if len(one) >= shortest),
        )
    except SecretUnreadable as unreadable:
        raise ProviderRefused("secret_unreadable", str(unreadable)) from None


def get_usable_provider(spec: AgentSpec, *, owner: User) -> Provider:
    """Return the provider of `spec`; raise `ProviderRefused`.

    `owner` is the owner of the agent, whose permissions apply.
    """
    slug = spec.model.provider
    provider = select_row(Provider, id=spec.model.provider_id or 0)
    if provider is None:
        raise ProviderRefused(
            "provider_gone",
            translatable("The provider %(provider)s was deleted.", provider=repr(slug)),
        )
    if provider.archived_at is not None:
        raise ProviderRefused(
            "provider_archived",
            translatable(
                "The provider %(provider)s is archived. Unarchive it, or select "
                "another provider for the agent.",
                provider=repr(slug),
            ),
        )
    if not may_use_provider(owner, provider):
        raise ProviderRefused(
            "not_allowed",
            translatable(
                "%(person)s, who owns the agent, can no longer use the provider "
                "%(provider)s.",
                person=owner.get_username(),
                provider=repr(slug),
            ),
        )
    return provider


def may_use_provider(owner: User, provider: Provider) -> bool:
    """Whether `owner` may use the provider; one's own needs no query."""
    if owner.is_superuser or provider.owner_id == owner.pk:
        return True
    return Provider.objects.usable_by(owner).filter(pk=provider.pk).exists()
