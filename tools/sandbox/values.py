"""What tools return, as values that JSON can hold."""

import json
from typing import Any

from pydantic_core import (
    PydanticSerializationError,
    from_json,
    to_json,
    to_jsonable_python,
)

from tools.errors import ToolFailed


class NotJsonSerializable(ToolFailed):
    """A tool returned something that cannot be stored."""

    def __init__(self, value: Any, why: str = "") -> None:
        name = type(value).__name__
        super().__init__(
            f"The tool returned a value of type {name!r}, which has no JSON form"
            f"{f' ({why})' if why else ''}."
        )


def to_jsonable(value: Any) -> Any:
    """Return `value` as JSON types: models, dates, sets, dataclasses are converted."""
    if value is None or type(value) in (str, int, bool):
        return value
    try:
        return from_json(to_json(value, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError, RecursionError):
        return convert_unusual_value(value)


def convert_unusual_value(value: Any) -> Any:
    """Convert text that UTF-8 cannot carry too; raise `NotJson` for the rest."""
    try:
        return to_jsonable_python(value, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotJsonSerializable(
            value, str(error).splitlines()[0].rstrip(".")
        ) from None


def format_tool_value(value: Any) -> str:
    """Return `value` as a model reads it: text as it is, all else as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
