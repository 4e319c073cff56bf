"""How lists and objects are written in a query or form, by the names OpenAPI uses.

https://spec.openapis.org/oas/v3.1.1#style-values; `deepObject` of nested values follows
https://github.com/ljharb/qs, as the specification leaves it open.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

from tools.kinds.placeholders import format_scalar

ParameterStyle = Literal["spaceDelimited", "pipeDelimited", "deepObject", "json"]

DELIMITERS = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}


def write_parameter(name: str, value: Any, style: str) -> list[tuple[str, str]]:
    """Return the names and values that are sent; none for an absent value.

    `style` is a `ParameterStyle`, `form` for one value with commas, or empty: a list is
    repeated, an object is JSON.
    """
    if value is None:
        return []
    if style == "json":
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return [(name, format_scalar(text))]
    if style == "deepObject" and isinstance(value, dict):
        return list(_iter_deep_pairs(name, value))
    if style in DELIMITERS and isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if not isinstance(value, list):
        return [(name, format_scalar(value))]
    if style in DELIMITERS:
        text = DELIMITERS[style].join(map(format_scalar, value))
        return [(name, text)] if value else []
    return [(name, format_scalar(one)) for one in value if one is not None]


def _iter_deep_pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _iter_deep_pairs(f"{name}[{format_scalar(key)}]", one)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for number, one in enumerate(value):
            yield from _iter_deep_pairs(f"{name}[{number}]", one)
    elif isinstance(value, list):
        yield from ((name, format_scalar(one)) for one in value)
    elif value is not None:
        yield name, format_scalar(value)
