"""All models one may use, of all providers, for a choice in one field."""

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth.models import User

from runs.models import Provider, ProviderModel

MOST = 300


class ModelChoice(NamedTuple):
    """One model of one provider."""

    provider: Provider
    model: str

    @property
    def key(self) -> str:
        """What a form sends: the provider's number and the model's name."""
        return f"{self.provider.pk}:{self.model}"

    @property
    def title(self) -> str:
        """How the choice reads."""
        return f"{self.provider} · {self.model}"


def model_choices(user: User) -> list[ModelChoice]:
    """Return the known models of every provider one may use, the default one first."""
    providers = list(Provider.objects.usable_by(user).order_by("name"))
    rows = ProviderModel.objects.filter(provider__in=providers).order_by("name")
    known: dict[int, list[str]] = {
        provider.pk: [provider.default_model] if provider.default_model else []
        for provider in providers
    }
    for pk, name in rows.values_list("provider", "name")[:MOST]:
        known[pk].append(name)
    return [
        ModelChoice(provider, name)
        for provider in providers
        for name in dict.fromkeys(known[provider.pk])
    ]


def model_of(choices: Iterable[ModelChoice], key: str) -> ModelChoice | None:
    """Return the choice of that key."""
    return next((one for one in choices if one.key == key), None)
