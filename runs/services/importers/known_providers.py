"""Names that other products have for model servers, and how to reach each."""

from runs.llm.presets import PRESETS, ProviderPreset

WORDS = {
    "OpenAI": ("openai",),
    "Anthropic": ("anthropic", "claude"),
    "Google Gemini": ("gemini", "google", "googlegemini", "googlegenerativeai"),
    "OpenRouter": ("openrouter",),
    "Mistral": ("mistral", "mistralai", "mistralcloud"),
    "DeepSeek": ("deepseek",),
    "Groq": ("groq",),
    "Ollama": ("ollama",),
}
"""Titles of presets; Azure is left out, as its address has the name of a resource."""
_PRESETS = {preset.title: preset for preset in PRESETS}
BY_WORD = {word: _PRESETS[title] for title, words in WORDS.items() for word in words}
_AFFIXES = (
    "lmchat",
    "chatcompletionclient",
    "completionclient",
    "component",
    "chat",
    "model",
)
MODEL_STARTS = (
    ("OpenAI", ("gpt-", "o1", "o3", "o4", "chatgpt-")),
    ("Anthropic", ("claude",)),
    ("Google Gemini", ("gemini",)),
)


def find_known_provider(name: str, model: str = "") -> ProviderPreset | None:
    """Return the model server of a foreign name, else that of a well-known model."""
    for part in reversed(name.replace(".", "/").split("/")):
        word = "".join(c for c in part.lower() if c.isalnum())
        for candidate in (word, *_strip_affixes(word)):
            if candidate in BY_WORD:
                return BY_WORD[candidate]
    if name:
        return None
    return next(
        (_PRESETS[title] for title, starts in MODEL_STARTS if model.startswith(starts)),
        None,
    )


def _strip_affixes(word: str) -> list[str]:
    """Return `word` without what products put before or after a name."""
    found = []
    for affix in _AFFIXES:
        word = word.removeprefix(affix).removesuffix(affix)
        found.append(word)
    return found
