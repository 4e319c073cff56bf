"""The models of a provider, and the agent kind that suits a model."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.models import Provider, ProviderModel
from runs.whole_number import parse_whole_number


class KindSuggestion(NamedTuple):
    """The kind that suits a model, and the reason."""

    kind: str
    reason: str


def filter_usable_provider(user: User, provider: str) -> QuerySet[Provider]:
    """Return the provider with this key, if `user` may use it, as a queryset."""
    return Provider.objects.usable_by(user).filter(pk=parse_whole_number(provider) or 0)


def list_provider_models(user: User, provider: str) -> list[ProviderModel]:
    """Return the known models of a provider that `user` may use."""
    may = filter_usable_provider(user, provider)
    return list(ProviderModel.objects.filter(provider__in=may)[:200])


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
