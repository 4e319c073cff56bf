"""Editing the arguments of a call before it is approved: a field each, or JSON."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from runs.forms.widgets import style_widgets
from runs.services.errors import ArgumentsRefused, FieldError
from tools.forms.arguments import (
    OMITTED,
    ArgumentsForm,
    JsonValueField,
    find_nested_value,
)
from tools.schema.argument_types import strip_null_type
from tools.text.parse_errors import NOT_JSON, find_json_error
from tools.text.storable import is_same_json

BREAKS = re.compile(r"\r\n?|\n")
"""Line breaks, all of which browsers send as CRLF."""


class EditedArgumentsForm(ArgumentsForm):
    """The arguments of one call; several such forms fit on one page.

    Sent as it is, it is exactly what is shown: a value that its field cannot express
    is entered as JSON, and an empty field keeps null or an empty text.
    """

    use_required_attribute = False
    takes_files = False

    def __init__(
        self, data: Any = None, *, schema: dict[str, Any], shown: Any, key: int
    ) -> None:
        self.prefix = f"arg-{key}"
        self.shown = shown
        super().__init__(data, schema=schema, values=shown)
        self.blanks: dict[str, Any] = {}
        """What empty fields stand for."""
        for label, path in self.paths.items():
            self.fit_field(label, find_shown_value(shown, path))
        style_widgets(self)

    def add_fields(
        self, part: dict[str, Any], *, required: bool, above: tuple[str, ...] = ()
    ) -> None:
        """Add fields for what is shown, also for arguments that the schema lacks."""
        needed = part.get("required", []) if required else []
        properties = {
            name: inner
            if is_open_object(
                find_shown_value(self.shown, (*above, name)), name in needed
            )
            else close_object(inner)
            for name, inner in part.get("properties", {}).items()
            if isinstance(inner, dict)
        }
        extra = find_nested_value(self.shown, above) or {}
        properties |= {name: {} for name in extra if name not in properties}
        part = {**part, "properties": properties}
        super().add_fields(part, required=required, above=above)

    def fit_field(self, label: str, value: Any) -> None:
        """Turn a field that cannot express the value into JSON; mark an empty one."""
        field = self.fields[label]
        if not is_expressed(field, self.initial[label], value):
            field = self.fields[label] = turn_into_json_field(field)
            self.initial[label] = value
        if field.prepare_value(self.initial[label]) not in (None, ""):
            return
        field.is_needed, field.required = field.required, False  # type: ignore[attr-defined]  # for the template
        if value is not OMITTED:
            self.blanks[label] = value
            label_blank(field, "null" if value is None else _("empty text"))

    def clean(self) -> dict[str, Any]:
        for label, blank in self.blanks.items():
            if self.cleaned_data.get(label) is OMITTED:
                self.cleaned_data[label] = blank
        return self.cleaned_data

    def add_refusals(self, errors: Iterable[FieldError]) -> None:
        """Show at its field what the schema refuses; fields may have errors already."""
        if not self.is_valid():
            return
        for error in errors:
            label = self.find_field(error.field)
            where = "" if error.field in ("", label) else f"{error.field}: "
            self.add_error(label, f"{where}{error.message}")

    def find_field(self, place: str) -> str | None:
        """Return the field of a value such as `items.0.sku`."""
        found = [one for one in self.fields if f"{place}.".startswith(f"{one}.")]
        return max(found, key=len, default=None)

    def focus_error(self) -> None:
        """Let the page open at the first field with an error."""
        for name, field in self.fields.items():
            if name in self.errors:
                field.widget.attrs["autofocus"] = True
                return

    def list_refusals(self) -> list[FieldError]:
        return [
            FieldError(str(self.fields[name].label), str(error))
            for name, errors in self.errors.items()
            for error in errors
        ]


def find_shown_value(shown: Any, path: Sequence[str]) -> Any:
    """Return the value at `path`; `OMITTED` if there is none."""
    *above, name = path
    whole = find_nested_value(shown, above)
    return whole.get(name, OMITTED) if isinstance(whole, dict) else OMITTED


def is_open_object(value: Any, required: bool) -> bool:
    """Whether fields of its own can express an object, if the value is for one."""
    if value is OMITTED:
        return not required
    return isinstance(value, dict) and (required or bool(value))


def close_object(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that is one field."""
    plain = strip_null_type(part)
    return {**plain, "properties": {}} if plain.get("properties") else part


def is_expressed(field: forms.Field, initial: Any, value: Any) -> bool:
    """Whether a browser that sends the field as it is shown sends the value."""
    shown = field.prepare_value(initial)
    if shown in (None, ""):
        return True
    try:
        sent = field.clean(BREAKS.sub("\r\n", str(shown)))
    except ValidationError:
        return False
    return sent is not OMITTED and is_same_json(sent, value)


def turn_into_json_field(field: forms.Field) -> JsonValueField:
    return JsonValueField(
        required=field.required, label=field.label, help_text=field.help_text
    )


def label_blank(field: forms.Field, label: str) -> None:
    """Let an empty field say what it stands for."""
    widget = field.widget
    if isinstance(widget, forms.Select):
        widget.choices = [("", label), *list(widget.choices)[1:]]
    else:
        widget.attrs["placeholder"] = label


def build_edit_form(
    schema: dict[str, Any] | None, shown: Any, *, key: int
) -> EditedArgumentsForm | None:
    """Return the form; None if its fields cannot express exactly what is shown."""
    if schema is None or not isinstance(shown, dict):
        return None
    form = EditedArgumentsForm(schema=schema, shown=shown, key=key)
    unchanged = {
        one.html_name: BREAKS.sub("\r\n", str(one.value()))
        for one in form
        if one.value() is not None
    }
    typed = EditedArgumentsForm(unchanged, schema=schema, shown=shown, key=key)
    if not form.fields or not typed.is_valid():
        return None
    return form if is_same_json(typed.tool_input(), shown) else None


def parse_edited_fields(form: EditedArgumentsForm, shown: Any) -> Any:
    """Return the typed arguments; None if nothing was changed."""
    if not form.is_valid():
        raise ArgumentsRefused(form.list_refusals())
    typed = form.tool_input()
    return None if is_same_json(typed, shown) else typed


def parse_edited_text(text: str, shown: Any) -> Any:
    """Return the arguments typed as one text; None if nothing was changed."""
    if isinstance(shown, str):
        plain = BREAKS.sub("\n", text)
        return None if plain == BREAKS.sub("\n", shown) else plain
    try:
        typed = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"{NOT_JSON} {find_json_error(text)}"
        raise ArgumentsRefused([FieldError("", why)]) from error
    return None if is_same_json(typed, shown) else typed
