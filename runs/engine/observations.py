"""Tool results as text for the model and for storage (R17)."""

import json
from typing import Any

from runs.engine.parsing.clean import clean_json, clean_text

MAX_STORED_BYTES = 1_048_576
"""Bytes of an observation that are stored."""


def stringify_value(value: Any) -> str:
    """Return a string unchanged, anything else as compact JSON."""
    if isinstance(value, str):
        return clean_text(value)
    return json.dumps(clean_json(value), ensure_ascii=False, separators=(",", ":"))


def truncate_for_model(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` bytes and a note that says so."""
    return _truncate(text, limit, "shown to you")


def truncate_for_storage(text: str) -> str:
    """Return `text`, or its first MiB and a note that says so."""
    return _truncate(text, MAX_STORED_BYTES, "kept")


def _truncate(text: str, limit: int, fate: str) -> str:
    if len(text) * 4 <= limit:
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    kept = raw[: max(limit, 0)].decode("utf-8", "ignore")
    return f"{kept}\n[cut: {limit} of {len(raw)} bytes are {fate}]"
