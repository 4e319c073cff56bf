"""Store what a provider reports about its models, for forms, costs and limits."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs.engine.parsing.clean import clean_text
from runs.llm.base import ModelCard
from runs.llm.model_catalog import find_known_model
from runs.models import Provider, ProviderModel

PRICES = ("input_price", "cached_price", "output_price")
REPORTED_FIELDS = (
    *("functions", "images", "audio", "stop_words", "streaming", "context_tokens"),
    *PRICES,
)
"""Fields that a server may report."""


@transaction.atomic
def refresh_models(provider: Provider, cards: Iterable[ModelCard]) -> None:
    """Store what `cards` report; values set by a person, or not reported, stay."""
    now = timezone.now()
    message = {clean_text(card.name)[:200]: get_reported_fields(card) for card in cards}
    message.pop("", None)
    known = {row.name: row for row in provider.models.filter(name__in=message)}
    for name, facts in message.items():
        facts |= find_published_fields(provider, name, facts, known.get(name))
    for name, row in known.items():
        for field, value in message[name].items():
            if field not in row.edited:
                setattr(row, field, value)
        row.seen_at = now
    ProviderModel.objects.bulk_update(
        known.values(), [*REPORTED_FIELDS, "seen_at"], batch_size=100
    )
    ProviderModel.objects.bulk_create(
        [
            ProviderModel(provider=provider, name=name, seen_at=now, **facts)
            for name, facts in message.items()
            if name not in known
        ],
        ignore_conflicts=True,
    )


def find_published_fields(
    provider: Provider, name: str, facts: dict[str, Any], row: ProviderModel | None
) -> dict[str, Any]:
    """Return what is published about a model and neither reported nor stored."""
    model = find_known_model(provider.base_url, name)
    if model is None:
        return {}
    taken = set(facts)
    if row is not None:
        taken |= {
            field
            for field in REPORTED_FIELDS
            if field in row.edited or getattr(row, field) is not None
        }
    if taken & set(PRICES):  # prices belong together
        taken |= set(PRICES)
    return {
        field: value
        for field, value in model._asdict().items()
        if value is not None and field not in taken
    }


def get_reported_fields(card: ModelCard) -> dict[str, Any]:
    message = {name: getattr(card, name) for name in REPORTED_FIELDS}
    tokens = card.context_tokens
    if tokens is not None and not 0 < tokens < 2**31:  # the column cannot hold it
        message["context_tokens"] = None
    return {name: value for name, value in message.items() if value is not None}
