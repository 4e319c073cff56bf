"""The variables of code at the line where it failed, for the person who tests it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_VARIABLES = 30
MAX_VALUE_TEXT = 400
"""Characters of one value."""
MAX_VARIABLE_NAME = 80


class VariableText(NamedTuple):
    """A variable, and its value as Python writes it."""

    name: str
    value: str


@dataclass(frozen=True)
class FailedFrame:
    """A line of the code, and the variables there when it raised."""

    line: int
    variables: tuple[VariableText, ...]


FrameReader = Callable[[FailedFrame], None]
"""Receives the variables of code that failed. Models and logs never get them."""


def parse_failed_frame(raw: Any) -> FailedFrame | None:
    """Return what a sandbox wrote, which the code may have written itself."""
    line = raw.get("line") if isinstance(raw, dict) else None
    pairs = raw.get("variables") if isinstance(raw, dict) else None
    if not isinstance(line, int) or not isinstance(pairs, list):
        return None
    found = [
        VariableText(pair[0][:MAX_VARIABLE_NAME], pair[1][:MAX_VALUE_TEXT])
        for pair in pairs[:MAX_VARIABLES]
        if isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(one, str) for one in pair)
    ]
    return FailedFrame(line, tuple(found)) if found else None
