"""Keeping what a server tells of its models."""

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
