"""List prices of models whose servers report none; people can change each of them.

In dollars per million tokens, without discounts, for prompts that are not extra long.
The comment of each host says where its figures come from and, where known, their
month. Models whose price for a usual prompt is not one number, such
as claude-haiku-5-5, are left out. A server's report comes first.
"""

import re
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit


class ListPrice(NamedTuple):
    """Dollars per million tokens."""

    input_price: Decimal
    cached_price: Decimal | None
    output_price: Decimal


_PRICES = {
    # A public registry of prices, July 2026; above 272,000 tokens of input, gpt-5.4 and
    # newer cost more
    "api.openai.com": """
        gpt-5.6 5 0.5 30
        gpt-5.6-sol 5 0.5 30
        gpt-5.6-terra 2.5 0.25 15
        gpt-5.6-luna 1 0.1 6
        gpt-5.5 5 0.5 30
        gpt-5.4 2.5 0.25 15
        gpt-5.4-mini 0.75 0.075 4.5
        gpt-5.4-nano 0.2 0.02 1.25
        gpt-5.2 1.75 0.175 14
        gpt-5.1 1.25 0.125 10
        gpt-5 1.25 0.125 10
        gpt-5-mini 0.25 0.025 2
        gpt-5-nano 0.05 0.005 0.4
        gpt-4.1 2 0.5 8
        gpt-4.1-mini 0.4 0.1 1.6
        gpt-4.1-nano 0.1 0.025 0.4
        gpt-4o 2.5 1.25 10
        gpt-4o-mini 0.15 0.075 0.6
        o3 2 0.5 8
        o3-mini 1.1 0.55 4.4
        o4-mini 1.1 0.275 4.4
    """,
    # Excerpts of platform.claude.com/docs/en/about-claude/pricing, October 2026
    "api.anthropic.com": """
        claude-fable-5-1 10 0.25 50
        claude-fable-5 10 1 50
        claude-opus-5-5 4 0.2 20
        claude-opus-5 5 0.5 25
        claude-opus-4-8 5 0.5 25
        claude-opus-4-7 5 0.5 25
        claude-opus-4-6 5 0.5 25
        claude-opus-4-5 5 0.5 25
        claude-sonnet-5-5 2 0.1 10
        claude-sonnet-5 2 0.2 10
        claude-sonnet-4-6 3 0.3 15
        claude-sonnet-4-5 3 0.3 15
        claude-haiku-4-5 1 0.1 5
    """,
    # A public registry of prices, July 2026; above 200,000 tokens of input, the pro
    # models cost more
    "generativelanguage.googleapis.com": """
        gemini-3.6-flash 1.5 0.15 7.5
        gemini-3.5-flash 1.5 0.15 9
        gemini-3.5-flash-lite 0.3 0.03 2.5
        gemini-3.1-pro-preview 2 0.2 12
        gemini-3.1-flash-lite 0.25 0.025 1.5
        gemini-3-flash-preview 0.5 0.05 3
        gemini-2.5-pro 1.25 0.125 10
        gemini-2.5-flash 0.3 0.03 2.5
        gemini-2.5-flash-lite 0.1 0.01 0.4
    """,
    # Public issues that quote mistral.ai/pricing, May 2026; mistral-medium-latest is
    # version 3.5
    "api.mistral.ai": """
        mistral-medium-3.5 1.5 - 7.5
        mistral-medium-3-5 1.5 - 7.5
        mistral-medium 1.5 - 7.5
        codestral 0.3 - 0.9
    """,
    # Excerpts of api-docs.deepseek.com/quick_start/pricing, October 2026; the price of
    # peak hours, which is the higher one
    "api.deepseek.com": """
        deepseek-flash 0.3 0.006 1.2
        deepseek-v4-flash 0.3 0.006 1.2
        deepseek-v4-pro 1.32 0.044 3.96
    """,
    # Public issues; the prices of the Llama models are not confirmed for 2026
    "api.groq.com": """
        openai/gpt-oss-120b 0.15 0.075 0.6
        llama-3.3-70b-versatile 0.59 - 0.79
        llama-3.1-8b-instant 0.05 - 0.08
    """,
}
"""Of each host, a line for each model: name, input, cached input, output."""

SNAPSHOT = re.compile(r"-(?:latest|\d{4}|\d{8}|\d{4}-\d{2}-\d{2})\Z")
"""What a name ends with if it means one state of a model."""


def find_list_price(base_url: str, model: str) -> ListPrice | None:
    """Return the list price of a model of the server at `base_url`; None if unknown."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return None
    name = SNAPSHOT.sub("", model.removeprefix("models/"))
    for line in _PRICES.get(host, "").split("\n"):
        match line.split():
            case [known, given, cached, written] if known == name:
                saved = None if cached == "-" else Decimal(cached)
                return ListPrice(Decimal(given), saved, Decimal(written))
    return None
