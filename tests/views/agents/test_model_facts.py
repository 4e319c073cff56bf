"""What is known of a model, in one line."""

from decimal import Decimal

import pytest

from runs.models import ProviderModel
from runs.views.agents.model_facts import describe_model

PRICES = {"input_price": Decimal("0.25"), "output_price": Decimal(2)}


@pytest.mark.parametrize(
    ("known", "words"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"context_tokens": 8000}, "8,000 context", id="context"),
        pytest.param(
            {"functions": True, "images": True, "audio": False},
            "tool calls, images",
            id="capabilities",
        ),
        pytest.param({"functions": False}, "no tool calls", id="no-tool-calls"),
        pytest.param(PRICES, "$0.25 in, $2.00 out per 1M", id="prices"),
        pytest.param({"input_price": Decimal(1)}, "", id="half-a-price"),
        pytest.param(
            {"context_tokens": 8000, "functions": True} | PRICES,
            "8,000 context · tool calls · $0.25 in, $2.00 out per 1M",
            id="all",
        ),
    ],
)
def test_says_what_is_known_and_nothing_else(known, words):
    assert describe_model(ProviderModel(name="m", **known)) == words
