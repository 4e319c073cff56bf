"""Connect to a provider: for runs, connection tests and model lists."""

from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.engine.types import ModelRequest
from runs.llm.base import LLM, Endpoint, ModelCard, WireRequest
from runs.llm.errors import ModelCallError
from runs.llm.registry import open_llm
from runs.models import Provider
from runs.services.providers.outages import end_outages
from runs.services.providers.refresh_models import refresh_models
from runs.store.sanitizer import HIDDEN, Sanitizer
from tools.errors import DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline
from tools.net.netpolicy import NetPolicy
from tools.net.outbound_policy import get_net_policy
from tools.secrets import SecretUnreadable

TEST_SECONDS = 10.0


@dataclass(frozen=True)
class ProviderTest:
    ok: bool
    message: str
    models: tuple[ModelCard, ...] = ()


def build_endpoint(provider: Provider) -> Endpoint:
    """Return the URL and the decrypted key; raise `SecretUnreadable`."""
    return Endpoint(
        kind=provider.kind,
        base_url=provider.base_url,
        key=provider.key(),
        headers=provider.headers(),
        timeout=provider.timeout,
        slug=provider.slug,
    )


def get_provider_secrets(provider: Provider) -> tuple[str, ...]:
    """Return what is sent and must not be stored with the reply.

    Raises `SecretUnreadable`.
    """
    return provider.key(), *(value for _, value in provider.headers())


def get_provider_net_policy() -> NetPolicy:
    """Return where providers may be: public addresses, and those in the settings."""
    return get_net_policy("provider")


def open_provider_llm(provider: Provider) -> LLM:
    """Return a connection to `provider`; the caller closes it."""
    return open_llm(build_endpoint(provider), get_provider_net_policy())


def build_provider_wire_request(
    provider: Provider, request: ModelRequest
) -> WireRequest:
    """Return what is sent to `provider`, with its key and extra headers hidden.

    Raise `ModelCallError` if its address is invalid or its kind is not known.
    """
    has_key = provider.sealed_key or provider.may_read(provider.key_env)
    try:
        names = [name for name, _value in provider.headers()]
    except SecretUnreadable:
        names = []
    endpoint = Endpoint(
        kind=provider.kind,
        base_url=provider.base_url,
        key=HIDDEN if has_key else "",
        headers=tuple((name, HIDDEN) for name in names),
        slug=provider.slug,
    )
    llm = open_llm(endpoint, get_provider_net_policy())
    try:
        return llm.build_wire_request(request)
    finally:
        llm.close()


def fetch_provider_models(
    provider: Provider, *, seconds: float = TEST_SECONDS
) -> list[ModelCard]:
    """Return the models of the server; raise `ModelCallError` or `DeadlineExceeded`."""
    llm = open_provider_llm(provider)
    try:
        return llm.list_models(deadline=Deadline(seconds=seconds))
    finally:
        llm.close()


def run_provider_test(provider: Provider) -> ProviderTest:
    """Test the saved provider; store the result and the models for its page.

    A success ends its outages.
    """
    outcome = check_connection(provider)
    if outcome.ok:
        refresh_models(provider, outcome.models)
    provider.tested_at = timezone.now()
    provider.test_error = "" if outcome.ok else outcome.message
    Provider.objects.filter(pk=provider.pk).update(
        tested_at=provider.tested_at, test_error=provider.test_error
    )
    if outcome.ok:
        end_outages(provider)
    return outcome


def check_connection(provider: Provider) -> ProviderTest:
    """List the models, as a run would, within ten seconds; store nothing."""
    try:
        models = tuple(fetch_provider_models(provider))
    except DeadlineExceeded:
        return ProviderTest(
            ok=False,
            message=_("No response from %(url)s within %(seconds)s s.")
            % {"url": provider.base_url, "seconds": f"{TEST_SECONDS:g}"},
        )
    except (ModelCallError, ToolFailed) as error:  # a server may echo secrets
        text = Sanitizer(get_provider_secrets(provider)).text(str(error))
        return ProviderTest(ok=False, message=text)
    except SecretUnreadable as unreadable:
        return ProviderTest(ok=False, message=str(unreadable))
    message = (
        ngettext(
            "Connected. The server offers %(count)s model.",
            "Connected. The server offers %(count)s models.",
            len(models),
        )
        % {"count": len(models)}
        if models
        else _("Connected. The server does not list any models.")
    )
    return ProviderTest(ok=True, message=message, models=models)
