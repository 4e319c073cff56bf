"""What is published about models, by host and name."""

from decimal import Decimal

import pytest

from runs.llm.model_catalog import KnownModel, find_known_model

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


@pytest.mark.parametrize(
    ("url", "model", "written"),
    [
        pytest.param(OPENAI, "gpt-4o", "10", id="name"),
        pytest.param(OPENAI, "gpt-4o-mini-2024-07-18", "0.6", id="snapshot"),
        pytest.param(
            ANTHROPIC, "claude-sonnet-4-5-20250929", "15", id="snapshot-in-digits"
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
        pytest.param(
            "https://RESOURCE.openai.azure.com/openai/v1",
            "gpt-4o-2024-11-20",
            "10",
            id="azure",
        ),
        pytest.param(
            "https://resource.services.ai.azure.com/openai/v1",
            "gpt-5-mini",
            "2",
            id="azure-foundry",
        ),
    ],
)
def test_knows_the_price(url, model, written):
    known = find_known_model(url, model)

    assert known is not None
    assert known.output_price == Decimal(written)


@pytest.mark.parametrize(
    ("url", "model"),
    [
        pytest.param(OPENAI, "gpt-4o-audio-preview", id="longer-name"),
        pytest.param(OPENAI, "", id="no-name"),
        pytest.param("http://127.0.0.1:8000/v1", "gpt-4o", id="another-server"),
        pytest.param("https://api.openai.com.evil.example/v1", "gpt-4o", id="alike"),
        pytest.param("https://openai.azure.com.evil.example/v1", "gpt-4o", id="azure"),
        pytest.param("http://[", "gpt-4o", id="no-address"),
    ],
)
def test_guesses_nothing(url, model):
    assert find_known_model(url, model) is None


@pytest.mark.parametrize(
    ("url", "model", "facts"),
    [
        pytest.param(OPENAI, "gpt-5", (400_000, True, True), id="openai"),
        pytest.param(OPENAI, "o3-mini", (200_000, True, False), id="no-images"),
        pytest.param(OPENAI, "gpt-5.6", (None, True, True), id="part"),
        pytest.param(GOOGLE, "gemini-2.5-pro", (1_048_576, True, True), id="google"),
    ],
)
def test_knows_context_function_calling_and_images(url, model, facts):
    known = find_known_model(url, model)

    assert known is not None
    assert (known.context_tokens, known.functions, known.images) == facts


def test_a_price_that_depends_on_the_prompt_is_left_out():
    known = find_known_model(ANTHROPIC, "claude-haiku-5-5")

    assert known == KnownModel(None, None, None, 1_000_000, True, True)
