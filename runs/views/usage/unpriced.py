"""Models without a price: their tokens are not part of any cost."""

from collections.abc import Mapping
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Q
from django.urls import reverse

from runs.llm.registry import list_offline_kinds
from runs.models import Provider, ProviderModel
from runs.services.search.slot_figures import UsageSums

MAX_NAMED = 3


class UnpricedModels(NamedTuple):
    """Models that cost an unknown amount."""

    names: list[str]
    """The first ones."""
    models: int
    share: float
    """Of all tokens, from 0 to 1."""
    url: str
    """Where the viewer can set a price; empty if that is up to others."""


def find_unpriced_models(
    used: Mapping[int | str, UsageSums], user: User
) -> UnpricedModels | None:
    """Return the models of providers here that cost nothing and have no price.

    A model with a price of 0 is free; the demo costs nothing. Models that only imported
    traces name have no provider.
    """
    free = {str(name) for name, sums in used.items() if sums.tokens and not sums.cost}
    known = ProviderModel.objects.filter(
        name__in=free, provider__in=Provider.objects.usable_by(user)
    )
    is_offline = Q(provider__kind__in=list_offline_kinds())
    has_cost = Q(input_price__isnull=False) | is_offline
    free = set(known.exclude(has_cost).values_list("name", flat=True))
    free -= set(known.filter(has_cost).values_list("name", flat=True))
    if not free:
        return None
    names = sorted(free, key=lambda name: (-used[name].tokens, name))
    editable = Provider.objects.editable_by(user)
    row = known.filter(name__in=free, provider__in=editable).first()
    tokens = sum(used[name].tokens for name in names)
    return UnpricedModels(
        names[:MAX_NAMED],
        len(names),
        tokens / sum(sums.tokens for sums in used.values()),
        reverse("provider-model", args=[row.provider_id, row.pk]) if row else "",
    )
