"""List prices by host and name."""

from decimal import Decimal

import pytest

from runs.llm.list_prices import find_list_price

OPENAI = "https://api.openai.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


@pytest.mark.parametrize(
    ("url", "model", "written"),
    [
        pytest.param(OPENAI, "gpt-4o", "10", id="name"),
        pytest.param(OPENAI, "gpt-4o-mini-2024-07-18", "0.6", id="snapshot"),
        pytest.param(
            "https://api.anthropic.com/v1",
            "claude-sonnet-4-5-20250929",
            "15",
            id="snapshot-in-digits",
        ),
        pytest.param(GOOGLE, "models/gemini-2.5-pro", "10", id="with-folder"),
        pytest.param(
            "https://api.mistral.ai/v1", "mistral-medium-latest", "7.5", id="latest"
        ),
        pytest.param(
            "https://api.deepseek.com", "deepseek-v4-pro", "3.96", id="peak-hours"
        ),
        pytest.param(
            "https://api.groq.com/openai/v1",
            "openai/gpt-oss-120b",
            "0.6",
            id="name-with-maker",
        ),
    ],
)
def test_knows_the_price(url, model, written):
    price = find_list_price(url, model)

    assert price is not None
    assert price.output_price == Decimal(written)


@pytest.mark.parametrize(
    ("url", "model"),
    [
        pytest.param(OPENAI, "gpt-4o-audio-preview", id="longer-name"),
        pytest.param(OPENAI, "", id="no-name"),
        pytest.param(
            "https://api.anthropic.com/v1", "claude-haiku-5-5", id="price-by-length"
        ),
        pytest.param("http://127.0.0.1:8000/v1", "gpt-4o", id="another-server"),
        pytest.param("https://api.openai.com.evil.example/v1", "gpt-4o", id="alike"),
        pytest.param("http://[", "gpt-4o", id="no-address"),
    ],
)
def test_guesses_no_price(url, model):
    assert find_list_price(url, model) is None
