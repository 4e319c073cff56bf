"""What differs between the accepted and the newer definition of an MCP tool."""

import difflib
import json
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from tools.visible_text import visible

MAX_LINES = 400
"""Lines that are compared; longer texts are shown one after the other."""

PARTS = (
    ("What the model reads", "description"),
    ("Arguments", "args_schema"),
    ("What the server says of its effect", "annotations"),
)


class Line(NamedTuple):
    """One line of a difference."""

    mark: str
    """`+` new, `-` gone, empty for both."""
    text: SafeString


class Part(NamedTuple):
    """One part of a definition."""

    title: str
    lines: list[Line]

    @property
    def is_changed(self) -> bool:
        """Whether anything of it differs."""
        return any(line.mark for line in self.lines)


def parts_of(old: dict[str, Any], new: dict[str, Any]) -> list[Part]:
    """Return all parts of a definition, with what is gone and new in each."""
    return [
        Part(title, lines_of(text_of(old.get(key)), text_of(new.get(key))))
        for title, key in PARTS
    ]


def text_of(value: Any) -> str:
    """Return a value as lines."""
    if isinstance(value, str):
        return value
    return json.dumps(value or {}, indent=2, ensure_ascii=False, sort_keys=True)


def lines_of(old: str, new: str) -> list[Line]:
    """Return the lines of both texts; those they share appear once."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > MAX_LINES:
        marked = [("-", one) for one in before] + [("+", one) for one in after]
        if before == after:
            marked = [("", one) for one in after]
    else:
        marked = [
            (one[0].strip(), one[2:])
            for one in difflib.ndiff(before, after, linejunk=None, charjunk=None)
            if one[0] != "?"
        ]
    return [Line(mark, visible(text)) for mark, text in marked]
