"""List prices of models whose servers report none; people can change each of them.

In dollars per million tokens, for requests without discounts, as their makers published
them when this file was last changed. A server's own report comes first.
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
    "api.openai.com": """
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
    "api.anthropic.com": """
        claude-opus-4-5 5 0.5 25
        claude-opus-4-1 15 1.5 75
        claude-opus-4 15 1.5 75
        claude-sonnet-4-5 3 0.3 15
        claude-sonnet-4 3 0.3 15
        claude-haiku-4-5 1 0.1 5
        claude-3-5-haiku 0.8 0.08 4
    """,
    "generativelanguage.googleapis.com": """
        gemini-2.5-pro 1.25 - 10
        gemini-2.5-flash 0.3 - 2.5
        gemini-2.5-flash-lite 0.1 - 0.4
        gemini-2.0-flash 0.1 - 0.4
    """,
    "api.mistral.ai": """
        mistral-medium 0.4 - 2
        codestral 0.3 - 0.9
    """,
    "api.deepseek.com": """
        deepseek-chat 0.28 0.028 0.42
        deepseek-reasoner 0.28 0.028 0.42
    """,
    "api.groq.com": """
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
