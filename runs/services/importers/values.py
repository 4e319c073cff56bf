"""Reading values of unknown types from another product's file."""

import json
from collections.abc import Iterator
from typing import Any


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return a text or number as text, and nothing for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)


def as_number(value: Any) -> int | float | None:
    """Return a number, also one that is written as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 30:
        return None
    try:
        return float(value) if any(c in value for c in ".eE") else int(value)
    except ValueError:
        return None


def get_path(value: Any, *names: str) -> Any:
    """Return the value below `names`, or None."""
    for name in names:
        value = as_dict(value).get(name)
    return value


def parse_nested_json(value: Any) -> Any:
    """Return the value of a text in JSON, None if it is not JSON; others unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def iter_dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; other values are left out."""
    yield from (one for one in as_list(value) if isinstance(one, dict))


MODEL_PARAMETERS = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "top_p": "top_p",
    "topP": "top_p",
    "frequency_penalty": "frequency_penalty",
    "frequencyPenalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "presencePenalty": "presence_penalty",
}
"""Settings of a model by the names of other products; the values are numbers."""


def pick_parameters(settings: Any) -> dict[str, Any]:
    """Return the settings of a model that providers here understand."""
    found = {
        MODEL_PARAMETERS[name]: number
        for name, value in as_dict(settings).items()
        if name in MODEL_PARAMETERS and (number := as_number(value)) is not None
    }
    if found.get("max_tokens", 1) <= 0:  # "no limit" in some products
        del found["max_tokens"]
    return found


def pick_iterations(value: Any, most: int) -> dict[str, Any]:
    """Return the limit of rounds, if the file has a usable one."""
    number = as_number(value)
    if number is None or not 1 <= number <= most:
        return {}
    return {"max_iterations": int(number)}
