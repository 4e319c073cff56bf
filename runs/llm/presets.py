"""Well-known model servers: how to reach each, to begin a provider with."""

from typing import NamedTuple


class ProviderPreset(NamedTuple):
    """What the form of a new provider is filled with."""

    title: str
    kind: str
    """A key of `runs.llm.registry.PROVIDER_KINDS`."""
    base_url: str
    env_key: str = ""
    """The environment variable that usually holds the key; empty without keys."""


PRESETS = (
    ProviderPreset(
        "OpenAI", "responses", "https://api.openai.com/v1", "OPENAI_API_KEY"
    ),
    ProviderPreset(
        "Anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"
    ),
    ProviderPreset(
        "Google Gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
    ),
    ProviderPreset(
        "OpenRouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"
    ),
    ProviderPreset("Mistral", "openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ProviderPreset(
        "DeepSeek", "openai", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"
    ),
    ProviderPreset("Groq", "openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ProviderPreset(
        "Azure OpenAI",
        "openai",
        "https://RESOURCE.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
    ),
    ProviderPreset("Ollama", "ollama", "http://127.0.0.1:11434/api"),
    ProviderPreset("vLLM", "openai", "http://127.0.0.1:8000/v1"),
    ProviderPreset("llama.cpp", "openai", "http://127.0.0.1:8080/v1"),
)
