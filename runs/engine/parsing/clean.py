"""Making text and JSON from models and tools safe to store, whatever they contain.

PostgreSQL takes no NUL, UTF-8 no lone surrogates, JSON no NaN. All functions here leave
clean values as they are, and cleaning twice changes nothing.
"""

import re
from typing import Any

MAX_DIGITS = 4300
"""Python itself refuses to print longer whole numbers."""

MAX_DEPTH = 200
TOO_DEEP = "[nested too deeply]"

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_LARGEST = 10**MAX_DIGITS


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    return _UNSAFE.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """Return `value` as JSON that every store takes.

    NaN and Infinity become null, whole numbers over 4300 digits a text, what is nested
    deeper than 200 levels a marker, and what is no JSON at all its text.
    """
    return _clean(value, MAX_DEPTH)


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_LARGEST < value < _LARGEST else f"{value:#x}"
    if isinstance(value, float):
        return value if value - value == 0 else None
    if depth == 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {_key(k): _clean(v, depth - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, depth - 1) for item in value]
    return clean_text(str(value))


def _key(key: Any) -> str:
    return clean_text(key if isinstance(key, str) else str(_clean(key, 1)))
