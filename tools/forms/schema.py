"""The editor for the arguments of a tool."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.errors import ToolFailed
from tools.kinds.python_function import find_code_function
from tools.schema.argument_types import describe_argument_type
from tools.schema.draft import (
    InvalidSchema,
    SchemaDraft,
    apply_editor_action,
    draft_from_schema,
    follow_function,
    iter_draft_hints,
    schema_from_draft,
)
from tools.schema.rows import (
    MAX_ARGUMENTS,
    TYPE_CHOICES,
    SchemaRow,
    are_equivalent_schemas,
)

ROW_TEXT_FIELDS = (
    "name",
    "type",
    "description",
    "choices",
    "default",
    "least",
    "most",
    "rest",
)


class SchemaEditor(forms.Widget):
    """Arguments as rows or JSON; works without JavaScript too."""

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> SchemaDraft:
        """Return what was typed, with the button that was pressed.

        Without other arguments, they are those of a function in the code.
        """
        draft = parse_schema_draft(data, name)
        if action := data.get(f"{name}-do"):
            draft = apply_editor_action(draft, str(action))
        return follow_code(draft, str(data.get("code") or ""))

    def value_omitted_from_data(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> bool:
        """Whether the form had no such field."""
        return name not in data and f"{name}-shape" not in data

    place = "tool-schema"
    """The id that takes the focus."""

    def id_for_label(self, id_: str) -> str:
        """Return nothing: it is a group of fields."""
        return ""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        return render_to_string("tools/_schema.html", build_editor_context(name, value))


class SchemaField(forms.Field):
    """A JSON Schema; None for a tool that takes a single text input."""

    widget = SchemaEditor
    code = ""
    """Stored code with a function, whose signature the stored schema may be."""

    def prepare_value(self, value: Any) -> SchemaDraft:
        if isinstance(value, SchemaDraft):
            return value
        read = follow_code(SchemaDraft(), self.code)
        if value is None or is_same_schema(schema_from_draft(read), value):
            return read
        return replace(draft_from_schema(value), has_function=read.has_function)

    def to_python(self, value: Any) -> dict[str, Any] | None:
        """Return the schema; refuse it while a button of the editor is pressed."""
        draft = self.prepare_value(value)
        if draft.is_changing:
            raise ValidationError(_("Not saved: the arguments are still being edited."))
        try:
            return schema_from_draft(draft)
        except InvalidSchema as none:
            raise ValidationError(none.flaws) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare schemas; an invalid one counts as changed."""
        try:
            return not is_same_schema(initial, self.to_python(data))
        except ValidationError:
            return True


def offer_arguments(sentence: str, names: list[str]) -> str:
    """Return an error with a button that adds these arguments; the form is not saved.

    The first of several errors has the button for all of them.
    """
    if not names:
        return sentence
    label = ngettext("Add argument %(names)s", "Add arguments %(names)s", len(names))
    return format_html(
        '{} <button class="btn small" name="args_schema-do" value="add:{}"'
        " formnovalidate>{}</button>",
        sentence,
        ",".join(names),
        label % {"names": ", ".join(names)},
    )


def is_same_schema(stored: dict[str, Any] | None, given: dict[str, Any] | None) -> bool:
    if stored is None or given is None:
        return stored is given
    return are_equivalent_schemas(stored, given)


def parse_schema_draft(data: Mapping[str, Any], name: str) -> SchemaDraft:
    """Parse the fields of the editor, or JSON alone."""
    shape = data.get(f"{name}-shape", "json")
    if shape == "text":
        return SchemaDraft("text")
    if shape == "function":
        return SchemaDraft("function", json=str(data.get(name) or ""))
    if shape != "rows":
        return SchemaDraft("json", json=str(data.get(name) or ""))
    count = str(data.get(f"{name}-count", ""))
    rows = min(int(count), MAX_ARGUMENTS) if re.fullmatch("[0-9]{1,4}", count) else 0
    return SchemaDraft(
        "rows",
        rows=tuple(
            parse_schema_row(data, f"{name}-{number}") for number in range(rows)
        ),
        rest=normalize_line_breaks(data.get(f"{name}-rest")),
    )


def follow_code(draft: SchemaDraft, code: str) -> SchemaDraft:
    """Return the draft with the arguments of the function that ends `code`.

    What was read last stays while the code cannot be read.
    """
    try:
        function = find_code_function(code.replace("\r\n", "\n"))
    except ToolFailed:
        return draft
    return follow_function(draft, function.schema if function else None)


def parse_schema_row(data: Mapping[str, Any], prefix: str) -> SchemaRow:
    typed = {
        field: normalize_line_breaks(data.get(f"{prefix}-{field}"))
        for field in ROW_TEXT_FIELDS
    }
    typed["name"] = typed["name"].strip()
    return SchemaRow(**typed, required=f"{prefix}-required" in data)


def normalize_line_breaks(text: Any) -> str:
    """Replace the two-character line breaks that browsers send."""
    return str(text or "").replace("\r\n", "\n")


def build_editor_context(name: str, value: Any) -> dict[str, Any]:
    """Return the context of the editor.

    Errors are included only while the schema is being edited; otherwise the form
    shows them.
    """
    draft = value if isinstance(value, SchemaDraft) else draft_from_schema(value)
    says = find_draft_messages(draft) if draft.is_changing else {}
    read = list_read_arguments(draft)
    return {"name": name, "draft": draft, "types": TYPE_CHOICES, "read": read, **says}


class ReadArgument(NamedTuple):
    name: str
    kind: str
    """The translated type."""
    is_required: bool


def list_read_arguments(draft: SchemaDraft) -> list[ReadArgument]:
    """Return the arguments that were read from a function."""
    try:
        schema = schema_from_draft(draft) if draft.shape == "function" else None
    except InvalidSchema:  # no browser sends that
        schema = None
    required = (schema or {}).get("required", [])
    return [
        ReadArgument(name, describe_argument_type(part), name in required)
        for name, part in (schema or {}).get("properties", {}).items()
        if isinstance(part, dict)
    ]


def find_draft_messages(draft: SchemaDraft) -> dict[str, list[str]]:
    """Return errors, and hints about valid but unlikely values."""
    try:
        schema_from_draft(draft)
    except InvalidSchema as none:
        return {"flaws": none.flaws, "hints": []}
    return {"flaws": [], "hints": list(iter_draft_hints(draft))}
