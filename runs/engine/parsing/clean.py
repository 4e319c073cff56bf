"""Sanitizing of text and JSON from models and tools for storage.

PostgreSQL accepts no NUL, UTF-8 no lone surrogates, JSON no NaN. Clean values are
returned unchanged, and cleaning is idempotent.
"""

import re
from typing import Any

MAX_DIGITS = 4300
"""Python itself refuses to print longer whole numbers."""

MAX_DEPTH = 200
TOO_DEEP = "[nested too deeply]"

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_MAX_INTEGER = 10**MAX_DIGITS


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    return _UNSAFE.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """Return `value` as JSON that every database accepts.

    NaN and Infinity become null, whole numbers over 4300 digits a text, values nested
    deeper than 200 levels a marker, and values that are not JSON their text.
    """
    return _clean_value(value, MAX_DEPTH)


def _clean_value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_MAX_INTEGER < value < _MAX_INTEGER else f"{value:#x}"
    if isinstance(value, float):
        return value if value - value == 0 else None
    if depth == 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {_clean_key(k): _clean_value(v, depth - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, depth - 1) for item in value]
    return clean_text(str(value))


def _clean_key(key: Any) -> str:
    return clean_text(key if isinstance(key, str) else str(_clean_value(key, 1)))
