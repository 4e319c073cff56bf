"""A JSON object in a text field."""

import json
from typing import Any

from django import forms

from runs.engine.parsing.clean import clean_json
from tools.text.parse_errors import NOT_JSON, find_json_error


def clean_json_object(text: str, *, expected: str) -> dict[str, Any]:
    """Parse a JSON object, empty for empty text; `expected` says what to enter."""
    text = text.strip()
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(f"{NOT_JSON} {find_json_error(text)}") from error
    if not isinstance(found, dict):
        raise forms.ValidationError(expected)
    clean: dict[str, Any] = clean_json(found)
    return clean


def dump_json_object(value: dict[str, Any] | None) -> str:
    """Return the text of the field; empty for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)
