"""Reading one value out of JSON text."""

import json
import re
from typing import Any

from tools.errors import ToolFailed
from tools.registry import tool
from tools.text.json_pointer import resolve_json_pointer

PATH_PART = re.compile(r"[^.\[\]]+")


class NotJsonText(ToolFailed):
    """The document cannot be read."""

    def __init__(self, error: ValueError) -> None:
        super().__init__(f"The document is not JSON: {error}.")


@tool(effect="read", timeout=5)
def json_query(document: str, path: str = "") -> Any:
    """Return the value at `path` in a JSON document.

    Args:
        document: The JSON text.
        path: A JSON pointer such as `/items/0/name`, or `items[0].name`; empty for all.
    """
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise NotJsonText(ValueError(str(error))) from None
    return resolve_json_pointer(
        value, path if path.startswith("/") else convert_to_pointer(path)
    )


def convert_to_pointer(path: str) -> str:
    """Return the JSON pointer for `a.b[0].c` or `$.a`."""
    parts = PATH_PART.findall(path.removeprefix("$"))
    return "".join(f"/{part.strip(chr(39) + chr(34))}" for part in parts)
