"""The models of a provider, and the agent kind that suits a model."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.htmx import HtmxRequest
from runs.models import Agent, Provider, ProviderModel
from runs.views.agents.model_facts import describe_model
from runs.whole_number import parse_whole_number

MAX_LISTED_MODELS = 1_000


class ListedModel(NamedTuple):
    """A model of the provider, and what is known of it."""

    name: str
    facts: str


class KindSuggestion(NamedTuple):
    """The kind that suits a model, and the reason."""

    kind: str
    reason: str


def filter_usable_provider(user: User, provider: str) -> QuerySet[Provider]:
    """Return the provider with this key, if `user` may use it, as a queryset."""
    return Provider.objects.usable_by(user).filter(pk=parse_whole_number(provider) or 0)


def list_usable_models(user: User, provider: str) -> list[ProviderModel]:
    """Return the known models of a provider that `user` may use."""
    may = filter_usable_provider(user, provider)
    return list(ProviderModel.objects.filter(provider__in=may)[:MAX_LISTED_MODELS])


def build_models_context(user: User, chosen: str, model: str) -> dict[str, Any]:
    provider = filter_usable_provider(user, chosen).first()
    rows = list_usable_models(user, chosen)
    models = [ListedModel(row.name, describe_model(row)) for row in rows]
    return {
        "models": models,
        "model_facts": next((one.facts for one in models if one.name == model), ""),
        "suits": suggest_kind(user, chosen, model),
        "usual": provider.default_model if provider else "",
        "model_warning": find_model_warning(provider, model) if provider else "",
    }


def find_model_warning(provider: Provider, model: str) -> str:
    """Warn of a model that the provider does not list; empty if its list is unknown."""
    listed = provider.models.values_list("name", flat=True)
    if not model or model == provider.default_model or model in (names := set(listed)):
        return ""
    if not names:
        return ""
    return _(
        "Provider %(provider)s does not list model %(model)s. Runs fail if its server "
        "does not have it."
    ) % {"provider": provider, "model": model}


def warn_of_unlisted_model(request: HtmxRequest, agent: Agent) -> None:
    """Show the warning about the model of a saved agent as a message."""
    if warning := find_model_warning(agent.provider, agent.model):
        messages.warning(request, warning)


def suggest_kind(user: User, provider: str, model: str) -> KindSuggestion:
    """Suggest a kind by the known capabilities of the model."""
    row = ProviderModel.objects.filter(
        provider__in=filter_usable_provider(user, provider), name=model
    ).first()
    if row is not None and row.functions is False:
        return KindSuggestion(
            "react",
            _(
                "ReAct suits %(model)s: the model does not support function calling, "
                "so it writes its calls as text."
            )
            % {"model": model},
        )
    if row is not None and row.functions:
        return KindSuggestion(
            "tool-calling",
            _("Tool calling suits %(model)s: the model supports function calling.")
            % {"model": model},
        )
    if not model:
        return KindSuggestion(
            "tool-calling", _("Select a model to see which kind suits it.")
        )
    return KindSuggestion(
        "tool-calling",
        _(
            "Tool calling is best if %(model)s supports function calling, which is "
            "unknown. ReAct works with every model."
        )
        % {"model": model},
    )
