"""The form field in which the arguments of a tool are described."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from tools.schema_draft import (
    Draft,
    NoSchema,
    changed,
    draft_of,
    hints_for,
    schema_in,
)
from tools.schema_rows import MOST_ROWS, TYPES, Row, say_the_same

TEXTS = ("name", "type", "description", "choices", "default", "least", "most", "rest")


class SchemaEditor(forms.Widget):
    """Rows of arguments, or JSON; its buttons work without a script too."""

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> Draft:
        """Return what was typed, with the button that was pressed."""
        draft = typed_in(data, name)
        action = data.get(f"{name}-do")
        return changed(draft, str(action)) if action else draft

    def value_omitted_from_data(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> bool:
        """Whether the form had no such field."""
        return name not in data and f"{name}-shape" not in data

    place = "tool-schema"
    """The id of what takes the focus."""

    def id_for_label(self, id_: str) -> str:
        """Return nothing: it is a group of fields."""
        return ""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        """Return the part of the page; htmx gets the same."""
        return render_to_string("tools/_schema.html", shown(name, value))


class SchemaField(forms.Field):
    """A JSON Schema of arguments; None for a tool that takes one text."""

    widget = SchemaEditor

    def prepare_value(self, value: Any) -> Draft:
        """Return what the editor shows."""
        return value if isinstance(value, Draft) else draft_of(value)

    def to_python(self, value: Any) -> dict[str, Any] | None:
        """Return the schema; refuse what is none, and what is still being changed."""
        draft = self.prepare_value(value)
        if draft.is_changing:
            raise ValidationError("Nothing is saved yet: the arguments have changed.")
        try:
            return schema_in(draft)
        except NoSchema as none:
            raise ValidationError(none.flaws) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare schemas; what is none is a change."""
        try:
            return not is_unchanged(initial, self.to_python(data))
        except ValidationError:
            return True


def is_unchanged(stored: dict[str, Any] | None, given: dict[str, Any] | None) -> bool:
    """Whether saving `given` would only write the stored schema in other words."""
    if stored is None or given is None:
        return stored is given
    return say_the_same(stored, given)


def typed_in(data: Mapping[str, Any], name: str) -> Draft:
    """Read the fields of the editor; JSON alone is taken too."""
    shape = data.get(f"{name}-shape", "json")
    if shape == "text":
        return Draft("text")
    if shape != "rows":
        return Draft("json", json=str(data.get(name) or ""))
    count = str(data.get(f"{name}-count", ""))
    rows = min(int(count), MOST_ROWS) if re.fullmatch("[0-9]{1,4}", count) else 0
    return Draft(
        "rows",
        rows=tuple(row_in(data, f"{name}-{number}") for number in range(rows)),
        rest=unix(data.get(f"{name}-rest")),
    )


def row_in(data: Mapping[str, Any], prefix: str) -> Row:
    """Read the fields of one row."""
    typed = {field: unix(data.get(f"{prefix}-{field}")) for field in TEXTS}
    typed["name"] = typed["name"].strip()
    return Row(**typed, required=f"{prefix}-required" in data)


def unix(text: Any) -> str:
    """Return a text with one character a line break, where browsers send two."""
    return str(text or "").replace("\r\n", "\n")


def shown(name: str, value: Any) -> dict[str, Any]:
    """Return what the editor's template shows.

    What is wrong is here only while it is being changed; the form itself says it of
    what was to be saved.
    """
    draft = value if isinstance(value, Draft) else draft_of(value)
    says = said(draft) if draft.is_changing else {}
    return {"name": name, "draft": draft, "types": TYPES, **says}


def said(draft: Draft) -> dict[str, list[str]]:
    """Return what is wrong now, and what is hardly meant."""
    try:
        schema_in(draft)
    except NoSchema as none:
        return {"flaws": none.flaws, "hints": []}
    return {"flaws": [], "hints": list(hints_for(draft))}
