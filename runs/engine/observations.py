"""What a tool returned, as text for the model and for the store (R17)."""

import json
from typing import Any

from runs.engine.clean import clean_json, clean_text

STORED_BYTES = 1_048_576
"""Bytes of an observation that are stored."""


def text_of(value: Any) -> str:
    """Return a text as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return clean_text(value)
    return json.dumps(clean_json(value), ensure_ascii=False, separators=(",", ":"))


def cut_for_model(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` bytes and a mark that says so."""
    return _cut(text, limit, "shown to you")


def cut_for_store(text: str) -> str:
    """Return `text`, or its first MiB and a mark that says so."""
    return _cut(text, STORED_BYTES, "kept")


def _cut(text: str, limit: int, fate: str) -> str:
    if len(text) * 4 <= limit:
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    kept = raw[: max(limit, 0)].decode("utf-8", "ignore")
    return f"{kept}\n[cut: {limit} of {len(raw)} bytes are {fate}]"
