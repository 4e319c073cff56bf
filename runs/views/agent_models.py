"""Which models a provider has, and which kind of agent suits one of them."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet

from runs.models import Provider, ProviderModel
from runs.whole_number import whole_number


class Suits(NamedTuple):
    """The kind that suits a model, and why in a sentence."""

    kind: str
    why: str


def provider_rows(user: User, provider: str) -> QuerySet[Provider]:
    """Return the provider one may use by that number, as a queryset of one or none."""
    return Provider.objects.usable_by(user).filter(pk=whole_number(provider) or 0)


def models_of(user: User, provider: str) -> list[ProviderModel]:
    """Return the known models of a provider one may use."""
    may = provider_rows(user, provider)
    return list(ProviderModel.objects.filter(provider__in=may)[:200])


def suits(user: User, provider: str, model: str) -> Suits:
    """Return the kind for what the model can do, as far as that is known."""
    row = ProviderModel.objects.filter(
        provider__in=provider_rows(user, provider), name=model
    ).first()
    if row is not None and row.functions is False:
        return Suits(
            "react",
            f"ReAct suits {model}: it calls no functions, so it writes its calls as "
            "text.",
        )
    if row is not None and row.functions:
        return Suits("tool-calling", f"Tool calling suits {model}: it calls functions.")
    if not model:
        return Suits("tool-calling", "Choose a model; the kind that suits it is named.")
    return Suits(
        "tool-calling",
        f"Tool calling is best if {model} calls functions, which is not known here. "
        "ReAct works with every model.",
    )
