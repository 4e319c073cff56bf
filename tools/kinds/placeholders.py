"""Placeholders such as `{order_id}`, which stand for arguments of a call."""

import json
import re
from typing import Any

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")


def fill_json_template(shape: Any, arguments: dict[str, Any]) -> Any:
    """Return a JSON value with all placeholders replaced; absent ones are omitted."""
    if isinstance(shape, str):
        return fill_text_template(shape, arguments)
    if isinstance(shape, list):
        return [fill_json_template(one, arguments) for one in shape]
    if isinstance(shape, dict):
        return {
            key: fill_json_template(one, arguments)
            for key, one in shape.items()
            if not is_absent_placeholder(one, arguments)
        }
    return shape


def is_absent_placeholder(shape: Any, arguments: dict[str, Any]) -> bool:
    """Whether a value is one placeholder without an argument."""
    match = PLACEHOLDER.fullmatch(shape) if isinstance(shape, str) else None
    return match is not None and match[1] not in arguments


def fill_text_template(template: str, arguments: dict[str, Any]) -> Any:
    """Return the value of a lone placeholder, or a text with all of them replaced."""
    if match := PLACEHOLDER.fullmatch(template):
        return arguments.get(match[1])
    return PLACEHOLDER.sub(lambda m: format_scalar(arguments.get(m[1], "")), template)


def join_list_value(value: Any) -> str:
    """Return a value as one string; a list is joined with commas."""
    if isinstance(value, list):
        return ",".join(format_scalar(one) for one in value)
    return format_scalar(value)


def format_scalar(value: Any) -> str:
    """Return a value as a string for URLs and forms."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
