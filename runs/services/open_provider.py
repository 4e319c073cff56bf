"""Reaching a provider: the same door for runs, connection tests and model lists."""

from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils import timezone

from runs.llm.base import LLM, Endpoint, ModelCard
from runs.llm.errors import ModelFailed
from runs.llm.registry import open_llm
from runs.models import Provider
from runs.services.redact import Choke
from tools.addresses import parse_private_hosts
from tools.errors import DeadlinePassed, ToolFailed
from tools.netpolicy import NetPolicy
from tools.secrets import SecretUnreadable
from tools.watch import Watch

TEST_SECONDS = 10.0


@dataclass(frozen=True)
class ProviderTest:
    """What came of asking a provider for its models."""

    ok: bool
    message: str
    models: tuple[ModelCard, ...] = ()


def endpoint_of(provider: Provider) -> Endpoint:
    """Return the address and the opened key; raise `SecretUnreadable`."""
    return Endpoint(
        kind=provider.kind,
        base_url=provider.base_url,
        key=provider.key(),
        headers=provider.headers(),
        timeout=provider.timeout,
        slug=provider.slug,
    )


def secrets_of(provider: Provider) -> tuple[str, ...]:
    """Return what is sent and must not be stored with what comes of it.

    Raise `SecretUnreadable`.
    """
    return provider.key(), *(value for _, value in provider.headers())


@cache
def net_policy() -> NetPolicy:
    """Return where providers may be: public addresses, and what the operator listed."""
    return NetPolicy(
        use="provider",
        private_hosts=parse_private_hosts(settings.PRIVATE_HOSTS or "").get(
            "provider", ()
        ),
        own_ports=frozenset(settings.OWN_PORTS),
    )


def open_llm_of(provider: Provider) -> LLM:
    """Return a connection to `provider`; the caller closes it."""
    return open_llm(endpoint_of(provider), net_policy())


def models_of(provider: Provider, *, seconds: float = TEST_SECONDS) -> list[ModelCard]:
    """Return the models the server names; raise `ModelFailed` or `DeadlinePassed`."""
    llm = open_llm_of(provider)
    try:
        return llm.list_models(watch=Watch(seconds=seconds))
    finally:
        llm.close()


def test_provider(provider: Provider) -> ProviderTest:
    """Ask for the models, as a run would, for at most ten seconds.

    Say what came, and keep it for the provider's page.
    """
    outcome = _test(provider)
    provider.tested_at = timezone.now()
    provider.test_error = "" if outcome.ok else outcome.message
    Provider.objects.filter(pk=provider.pk).update(
        tested_at=provider.tested_at, test_error=provider.test_error
    )
    return outcome


def _test(provider: Provider) -> ProviderTest:
    try:
        models = tuple(models_of(provider))
    except DeadlinePassed:
        return ProviderTest(
            ok=False,
            message=f"No answer from {provider.base_url} within {TEST_SECONDS:g} s.",
        )
    except (ModelFailed, ToolFailed) as error:  # a server may echo what it was sent
        told = Choke(secrets_of(provider)).text(str(error))
        return ProviderTest(ok=False, message=told)
    except SecretUnreadable as unreadable:
        return ProviderTest(ok=False, message=str(unreadable))
    named = f"It offers {len(models)} models." if models else "It names no models."
    return ProviderTest(ok=True, message=f"The server answers. {named}", models=models)


test_provider.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test
