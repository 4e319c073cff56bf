"""Names of model servers in files of other products."""

import pytest

from runs.services.importers.known_providers import find_known_provider


@pytest.mark.parametrize(
    ("name", "model", "title"),
    [
        ("openai", "", "OpenAI"),
        ("langgenius/openai/openai", "", "OpenAI"),
        ("lmchatopenai", "", "OpenAI"),
        ("chatOpenAI", "", "OpenAI"),
        ("OpenAIChatCompletionClient", "", "OpenAI"),
        ("lmchatgooglegemini", "", "Google Gemini"),
        ("chatGoogleGenerativeAI", "", "Google Gemini"),
        ("lmchatmistralcloud", "", "Mistral"),
        ("OllamaChatCompletionClient", "", "Ollama"),
        ("", "claude-sonnet-4-5", "Anthropic"),
    ],
)
def test_names_of_other_products_are_known(name, model, title):
    preset = find_known_provider(name, model)

    assert preset is not None
    assert preset.title == title


@pytest.mark.parametrize("name", ["AzureOpenAIChatCompletionClient", "tongyi", "x"])
def test_unknown_servers_are_not_guessed_by_the_model(name):
    assert find_known_provider(name, "gpt-4o") is None
