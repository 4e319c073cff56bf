"""The difference between the accepted and the new definition of an MCP tool."""

import json
from typing import Any, NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from tools.text.visible_text import render_visible_text
from tools.typed_generics import StrOrPromise
from tools.ui.diff import DiffLine, diff_texts

DEFINITION_PARTS = (
    (_("Description for the model"), "description"),
    (_("Arguments"), "args_schema"),
    (_("Effect according to the server"), "annotations"),
)


class DefinitionPart(NamedTuple):
    title: StrOrPromise
    lines: list[DiffLine]

    @property
    def rows(self) -> list[tuple[str, SafeString]]:
        """The tone of each line, and its text with hidden characters shown."""
        return [(line.tone, render_visible_text(line.text)) for line in self.lines]

    @property
    def is_changed(self) -> bool:
        return any(line.tone != "same" for line in self.lines)


def diff_definitions(old: dict[str, Any], new: dict[str, Any]) -> list[DefinitionPart]:
    """Return all parts of a definition, with what is gone and new in each."""
    return [
        DefinitionPart(
            title,
            # Nothing is omitted: a person decides on every character.
            diff_texts(
                format_definition_value(old.get(key)),
                format_definition_value(new.get(key)),
                context=None,
                is_exact=True,
                most=None,
            ),
        )
        for title, key in DEFINITION_PARTS
    ]


def format_definition_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value or {}, indent=2, ensure_ascii=False, sort_keys=True)
