"""The models of all providers a user may use, for one select field."""

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth.models import User

from runs.models import Provider, ProviderModel

MAX_CHOICES = 300


class ModelChoice(NamedTuple):
    provider: Provider
    model: str

    @property
    def key(self) -> str:
        """The value in a form: the provider's id and the model's name."""
        return f"{self.provider.pk}:{self.model}"

    @property
    def title(self) -> str:
        return f"{self.provider} · {self.model}"


def list_model_choices(user: User) -> list[ModelChoice]:
    """Return the known models of every usable provider, default models first."""
    providers = list(Provider.objects.usable_by(user).order_by("name"))
    rows = ProviderModel.objects.filter(provider__in=providers).order_by("name")
    known: dict[int, list[str]] = {
        provider.pk: [provider.default_model] if provider.default_model else []
        for provider in providers
    }
    for pk, name in rows.values_list("provider", "name")[:MAX_CHOICES]:
        known[pk].append(name)
    return [
        ModelChoice(provider, name)
        for provider in providers
        for name in dict.fromkeys(known[provider.pk])
    ]


def find_model_choice(choices: Iterable[ModelChoice], key: str) -> ModelChoice | None:
    return next((one for one in choices if one.key == key), None)
