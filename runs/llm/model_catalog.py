"""Prices and abilities of models whose servers report none; people can change each.

Prices are in dollars per million tokens, without discounts, for prompts that are not
extra long. The comment of each host says where its figures come from and, where known,
their month. A fact that is not certain, or a price that is not one number, is left out.
A server's report comes first.
"""

import re
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit


class KnownModel(NamedTuple):
    """What is published about a model; None if not listed. Named as in `ModelCard`."""

    input_price: Decimal | None
    cached_price: Decimal | None
    output_price: Decimal | None
    context_tokens: int | None
    functions: bool | None
    images: bool | None


_MODELS = {
    # A public registry of prices, July 2026, with the published context windows; above
    # 272,000 tokens of input, gpt-5.4 and newer cost more
    "api.openai.com": """
        gpt-5.6 5 0.5 30 - yes yes
        gpt-5.6-sol 5 0.5 30 - yes yes
        gpt-5.6-terra 2.5 0.25 15 - yes yes
        gpt-5.6-luna 1 0.1 6 - yes yes
        gpt-5.5 5 0.5 30 1050000 yes yes
        gpt-5.4 2.5 0.25 15 1050000 yes yes
        gpt-5.4-mini 0.75 0.075 4.5 400000 yes yes
        gpt-5.4-nano 0.2 0.02 1.25 400000 yes yes
        gpt-5.2 1.75 0.175 14 400000 yes yes
        gpt-5.1 1.25 0.125 10 400000 yes yes
        gpt-5 1.25 0.125 10 400000 yes yes
        gpt-5-mini 0.25 0.025 2 400000 yes yes
        gpt-5-nano 0.05 0.005 0.4 400000 yes yes
        gpt-4.1 2 0.5 8 1047576 yes yes
        gpt-4.1-mini 0.4 0.1 1.6 1047576 yes yes
        gpt-4.1-nano 0.1 0.025 0.4 1047576 yes yes
        gpt-4o 2.5 1.25 10 128000 yes yes
        gpt-4o-mini 0.15 0.075 0.6 128000 yes yes
        o3 2 0.5 8 200000 yes yes
        o3-mini 1.1 0.55 4.4 200000 yes no
        o4-mini 1.1 0.275 4.4 200000 yes yes
    """,
    # Excerpts of platform.claude.com/docs/en/about-claude (pricing and models), October
    # 2026; the price of claude-haiku-5-5 depends on the length of the prompt
    "api.anthropic.com": """
        claude-fable-5-1 10 0.25 50 1000000 yes yes
        claude-fable-5 10 1 50 1000000 yes yes
        claude-opus-5-5 4 0.2 20 1000000 yes yes
        claude-opus-5 5 0.5 25 1000000 yes yes
        claude-opus-4-8 5 0.5 25 1000000 yes yes
        claude-opus-4-7 5 0.5 25 1000000 yes yes
        claude-opus-4-6 5 0.5 25 1000000 yes yes
        claude-opus-4-5 5 0.5 25 200000 yes yes
        claude-sonnet-5-5 2 0.1 10 1000000 yes yes
        claude-sonnet-5 2 0.2 10 1000000 yes yes
        claude-sonnet-4-6 3 0.3 15 1000000 yes yes
        claude-sonnet-4-5 3 0.3 15 200000 yes yes
        claude-haiku-5-5 - - - 1000000 yes yes
        claude-haiku-4-5 1 0.1 5 200000 yes yes
    """,
    # A public registry of prices, July 2026; above 200,000 tokens of input, the pro
    # models cost more
    "generativelanguage.googleapis.com": """
        gemini-3.6-flash 1.5 0.15 7.5 1048576 yes yes
        gemini-3.5-flash 1.5 0.15 9 1048576 yes yes
        gemini-3.5-flash-lite 0.3 0.03 2.5 1048576 yes yes
        gemini-3.1-pro-preview 2 0.2 12 1048576 yes yes
        gemini-3.1-flash-lite 0.25 0.025 1.5 1048576 yes yes
        gemini-3-flash-preview 0.5 0.05 3 1048576 yes yes
        gemini-2.5-pro 1.25 0.125 10 1048576 yes yes
        gemini-2.5-flash 0.3 0.03 2.5 1048576 yes yes
        gemini-2.5-flash-lite 0.1 0.01 0.4 1048576 yes yes
    """,
    # Public projects that quote mistral.ai/pricing and docs.mistral.ai, August 2026; a
    # number at the end is the month of a model of its own, not of a state
    "api.mistral.ai": """
        mistral-large 0.5 0.05 1.5 262144 yes yes
        mistral-large-2512 0.5 0.05 1.5 262144 yes yes
        mistral-medium-3.5 1.5 0.15 7.5 262144 yes yes
        mistral-medium-3-5 1.5 0.15 7.5 262144 yes yes
        mistral-medium 1.5 0.15 7.5 262144 yes yes
        mistral-medium-2508 0.4 0.04 2 262144 yes yes
        mistral-medium-2505 0.4 0.04 2 131072 yes yes
        mistral-small 0.15 0.015 0.6 256000 yes yes
        mistral-small-2603 0.15 0.015 0.6 256000 yes yes
        ministral-14b 0.2 0.02 0.2 262144 yes yes
        ministral-14b-2512 0.2 0.02 0.2 262144 yes yes
        ministral-8b 0.15 0.015 0.15 262144 yes yes
        ministral-8b-2512 0.15 0.015 0.15 262144 yes yes
        ministral-3b 0.1 0.01 0.1 262144 yes yes
        ministral-3b-2512 0.1 0.01 0.1 262144 yes yes
        devstral-2512 0.4 0.04 2 262144 yes no
        codestral 0.3 0.03 0.9 131072 - no
        codestral-2508 0.3 0.03 0.9 131072 - no
    """,
    # Excerpts of api-docs.deepseek.com/quick_start/pricing, October 2026; the price of
    # peak hours, which is the higher one
    "api.deepseek.com": """
        deepseek-flash 0.3 0.006 1.2 1000000 yes yes
        deepseek-v4-flash 0.3 0.006 1.2 1000000 yes -
        deepseek-v4-pro 1.32 0.044 3.96 1000000 yes no
    """,
    # Public projects and issues that quote Groq's pages, up to October 2026; the prices
    # of the Llama models and of Qwen 3 32B are not confirmed after the summer of 2026
    "api.groq.com": """
        openai/gpt-oss-120b 0.15 0.075 0.6 131072 yes no
        openai/gpt-oss-20b 0.075 - 0.3 131072 yes no
        openai/gpt-oss-safeguard-20b 0.075 - 0.3 131072 - no
        qwen/qwen3.8-27b 0.8 - 4 - - yes
        qwen/qwen3-32b 0.29 - 0.59 131072 yes no
        meta-llama/llama-4-scout-17b-16e-instruct 0.11 - 0.34 131072 yes yes
        llama-3.3-70b-versatile 0.59 - 0.79 131072 yes no
        llama-3.1-8b-instant 0.05 - 0.08 131072 yes no
    """,
}
"""Of each host, a line for each model: name, prices of input, cached input and output,
context window, function calling, images; `-` where unknown."""

AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com")

SNAPSHOT = re.compile(r"-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})\Z")
"""What a name ends with if it means one state of a model."""

_ANSWERS = {"yes": True, "no": False}


def find_known_model(base_url: str, model: str) -> KnownModel | None:
    """Return what is published about a model of the server at `base_url`."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return None
    if host.endswith(AZURE_HOSTS):
        host = "api.openai.com"
    name = SNAPSHOT.sub("", model.removeprefix("models/"))
    for line in _MODELS.get(host, "").split("\n"):
        match line.split():
            case [known, given, cached, written, context, functions, images] if (
                known == name
            ):
                return KnownModel(
                    _parse_price(given),
                    _parse_price(cached),
                    _parse_price(written),
                    None if context == "-" else int(context),
                    _ANSWERS.get(functions),
                    _ANSWERS.get(images),
                )
    return None


def _parse_price(word: str) -> Decimal | None:
    return None if word == "-" else Decimal(word)
