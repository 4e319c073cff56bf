"""Names of tools: which are possible, and what function-calling models get."""

import re
import unicodedata
from functools import lru_cache
from hashlib import sha256

MAX_TOOL_NAME_LENGTH = 64

_DECORATION = " \t\r\n\v\f\xa0\u200b\u200c\u200d\u2060\u3000\ufeff\"'`*[]“”‘’「」"
_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What model servers accept as a function name."""
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")


def strip_tool_name(text: str) -> str:
    """Return a tool's name without surrounding white space, quotes and marks."""
    name = text.strip(_DECORATION)
    if name.endswith("()"):
        return name[:-2].strip(_DECORATION)
    if name.startswith("(") and name.endswith(")"):
        return name[1:-1].strip(_DECORATION)
    return name


def is_tool_name(name: str) -> bool:
    """Whether a model can write `name` in a text, in any language.

    One line of 1 to 64 characters; brackets would begin the input.
    """
    return (
        0 < len(name) <= MAX_TOOL_NAME_LENGTH
        and strip_tool_name(name) == name
        and "[" not in name
        and not any(unicodedata.category(letter).startswith("C") for letter in name)
    )


@lru_cache(maxsize=4_096)
def build_function_name(name: str) -> str:
    """Return the name of a tool as a function; it depends on the tool's name alone.

    Model servers take only ASCII letters, digits, underscores and hyphens. The digest
    keeps names apart that differ in other characters.
    """
    if _FUNCTION_NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem = _UNSAFE.sub("_", plain).strip("_")[:55] or "tool"
    return f"{stem}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
