"""Reaching a provider: the same door for runs, connection tests and model lists."""

from dataclasses import dataclass
from functools import cache

from django.conf import settings

from runs.llm.base import LLM, Endpoint, ModelCard
from runs.llm.errors import ModelFailed
from runs.llm.registry import open_llm
from runs.models import Provider
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
    """Ask for the models, as a run would, for at most ten seconds; say what came."""
    try:
        models = tuple(models_of(provider))
    except DeadlinePassed:
        return ProviderTest(
            ok=False,
            message=f"No answer from {provider.base_url} within {TEST_SECONDS:g} s.",
        )
    except (ModelFailed, ToolFailed, SecretUnreadable) as error:
        return ProviderTest(ok=False, message=str(error))
    named = f"It offers {len(models)} models." if models else "It names no models."
    return ProviderTest(ok=True, message=f"The server answers. {named}", models=models)


test_provider.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test
