"""Keeping what a server tells of its models."""

from decimal import Decimal

import pytest

from runs.llm.base import ModelCard
from runs.services.providers.refresh_models import refresh_models
from tests.make import make_provider

pytestmark = pytest.mark.django_db


def refreshed(provider, **facts):
    """Return the row of the model after the server has told `facts`."""
    refresh_models(provider, [ModelCard("m", **facts)])
    return provider.models.get()


def test_stores_what_the_server_tells():
    row = refreshed(make_provider(), functions=True, context_tokens=4096)

    assert (row.functions, row.context_tokens, row.streaming) == (True, 4096, None)
    assert row.seen_at is not None


def test_what_it_sends_anew_replaces_what_it_sent():
    provider = make_provider()
    refreshed(provider, functions=True, context_tokens=4096)

    row = refreshed(provider, functions=False)
    assert (row.functions, row.context_tokens) == (False, 4096)


def test_what_a_person_has_set_stays():
    provider = make_provider()
    provider.models.create(
        name="m", functions=False, input_price=2, edited=["functions"]
    )

    row = refreshed(provider, functions=True, context_tokens=4096)
    assert (row.functions, row.context_tokens, row.input_price) == (False, 4096, 2)


def test_a_model_without_a_reported_price_gets_its_list_price():
    provider = make_provider(base_url="https://api.openai.com/v1")
    refresh_models(provider, [ModelCard("gpt-5-mini-2025-08-07"), ModelCard("other")])

    row = provider.models.get(name="gpt-5-mini-2025-08-07")
    assert (row.input_price, row.cached_price, row.output_price) == (
        Decimal("0.25"),
        Decimal("0.025"),
        Decimal(2),
    )
    assert provider.models.get(name="other").input_price is None


def test_a_list_price_replaces_no_price_of_a_person_or_server():
    provider = make_provider(base_url="https://api.openai.com/v1")
    provider.models.create(name="gpt-4o", output_price=7)
    provider.models.create(name="gpt-4.1", edited=["input_price", "output_price"])
    reported = ModelCard("o3", input_price=Decimal(1), output_price=Decimal(3))

    refresh_models(provider, [ModelCard("gpt-4o"), ModelCard("gpt-4.1"), reported])

    rows = provider.models.order_by("name").values_list("input_price", "output_price")
    assert list(rows) == [(None, None), (None, 7), (1, 3)]


def test_published_facts_fill_what_the_server_does_not_report():
    provider = make_provider(base_url="https://api.openai.com/v1")
    provider.models.create(name="gpt-4o", functions=None, edited=["functions"])
    provider.models.create(name="gpt-4.1", context_tokens=32_768)
    reported = ModelCard("o3", functions=False)

    refresh_models(provider, [ModelCard("gpt-4o"), ModelCard("gpt-4.1"), reported])

    facts = provider.models.values_list("context_tokens", "functions", "images")
    assert list(facts.order_by("name")) == [
        (32_768, True, True),
        (128_000, None, True),
        (200_000, False, True),
    ]
