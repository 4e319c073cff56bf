"""The form for testing a tool, built from the schema of its arguments."""

import json
from collections.abc import Sequence
from copy import copy
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.forms.error_messages import set_error_messages
from tools.forms.fields import JsonField
from tools.schema.argument_types import describe_argument_type, strip_null_type
from tools.schema.base64_bytes import encode_base64, is_base64
from tools.schema.references import resolve_references

TEXT_FIELD_NAME = "input"
"""The field of a tool that takes a single text input."""

OMITTED = object()
MAX_FILE_BYTES = 1 << 20
MAX_NESTED_OBJECTS = 3
"""Objects within objects; deeper ones are entered as JSON."""


class ArgumentsForm(forms.Form):
    """One field per argument; empty fields are not sent."""

    prefix = "arg"
    takes_files = True
    """Whether Base64 arguments are uploaded; otherwise they are texts."""

    is_checked = True
    """Whether errors are shown; not while the schema is still being written."""

    def __init__(
        self,
        data: Any = None,
        files: Any = None,
        *,
        schema: dict[str, Any] | None,
        values: Any = None,
    ) -> None:
        """Open the form; `values` are arguments that its fields begin with."""
        super().__init__(data, files)
        self.schema = schema
        if schema is None:
            text = forms.CharField(
                label=gettext_lazy("Input"),
                required=False,
                strip=False,
                widget=forms.Textarea(attrs={"rows": 3}),
            )
            text.kind = _("text")  # type: ignore[attr-defined]  # for the template
            self.fields[TEXT_FIELD_NAME] = text
            if isinstance(values, str):
                self.initial[TEXT_FIELD_NAME] = values
            return
        self.paths: dict[str, tuple[str, ...]] = {}
        """Where the value of a field belongs: the keys of nested objects."""
        self.required_objects: list[tuple[str, ...]] = []
        self.add_fields(resolve_references(schema), required=True)
        if isinstance(values, dict):
            self.set_values(values)

    def set_values(self, values: dict[str, Any]) -> None:
        """Begin with these arguments, without defaults of the schema."""
        for label, path in self.paths.items():
            field, value = self.fields[label], find_nested_value(values, path)
            if isinstance(field, ValueChoiceField) and value is not None:
                value = format_choice_label(value)
            if not isinstance(field, ContentField):
                self.initial[label] = value

    def show_defaults(self) -> None:
        """Begin with the default in each field that the page did not have yet."""
        typed: Any = copy(self.data)
        for label, field in self.fields.items():
            name = self.add_prefix(label)
            if field.initial is not None and name not in self.data:
                typed[name] = field.prepare_value(field.initial)
        self.data = typed

    def add_fields(
        self, part: dict[str, Any], *, required: bool, above: tuple[str, ...] = ()
    ) -> None:
        """Add a field for each property; objects add those of their own."""
        for name, inner in part.get("properties", {}).items():
            if not isinstance(inner, dict):
                continue
            path = (*above, name)
            is_required = required and name in part.get("required", [])
            plain = strip_null_type(inner)
            if plain.get("properties") and len(path) <= MAX_NESTED_OBJECTS:
                self.add_fields(plain, required=is_required, above=path)
                if is_required:
                    self.required_objects.append(path)
                continue
            label = ".".join(path)
            field: forms.Field
            if self.takes_files and is_base64(plain):
                field = ContentField(required=is_required)
            else:
                field = build_argument_field(inner, required=is_required)
            field.label, field.kind = label, describe_argument_type(inner)  # type: ignore[attr-defined]  # for the template
            if isinstance(field, TextListField):
                field.kind = _("%(type)s (one per line)") % {"type": field.kind}  # type: ignore[attr-defined]  # for the template
            field.help_text = str(inner.get("description", ""))
            set_error_messages(label, field, label=label)
            self.fields[label], self.paths[label] = field, path

    def tool_input(self) -> Any:
        if self.schema is None:
            return self.cleaned_data[TEXT_FIELD_NAME]
        found: dict[str, Any] = {}
        for path in self.required_objects:
            find_or_add_object(found, path)
        for label, value in self.cleaned_data.items():
            if value is not OMITTED:
                *above, name = self.paths[label]
                find_or_add_object(found, above)[name] = value
        return found


def find_or_add_object(whole: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the object at `path` in `whole`, which is added if it is missing."""
    for key in path:
        whole = whole.setdefault(key, {})
    return whole


def find_nested_value(whole: Any, path: Sequence[str]) -> Any:
    """Return the value at `path` in nested objects; None if there is none."""
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else None
    return whole


def build_argument_field(part: dict[str, Any], *, required: bool) -> forms.Field:
    part = strip_null_type(part)
    kind = part.get("type")
    initial = part.get("default")
    if isinstance(part.get("enum"), list):
        return ValueChoiceField(part["enum"], required=required, initial=initial)
    if kind == "boolean":
        return ValueChoiceField([True, False], required=required, initial=initial)
    if kind == "integer":
        return WholeNumberField(required=required, initial=initial)
    if kind == "number":
        return NumberField(required=required, initial=initial)
    if kind == "string":
        return TextField(required=required, initial=initial)
    if kind == "array" and is_text(part.get("items")):
        # An empty default is the same as no value.
        return TextListField(required=required, initial=initial or None)
    return JsonValueField(required=required, initial=initial)


def is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "string"


class TextField(forms.CharField):
    """A text; an empty one is omitted. Browsers send its line breaks as CRLF."""

    widget = forms.Textarea(attrs={"rows": 1})

    def __init__(self, **more: Any) -> None:
        super().__init__(strip=False, **more)

    def clean(self, value: Any) -> Any:
        return super().clean(value).replace("\r\n", "\n") or OMITTED


class ContentField(forms.FileField):
    """A file; its content is sent as Base64."""

    def clean(self, data: Any, initial: Any = None) -> Any:
        file = super().clean(data, initial)
        if not file:
            return OMITTED
        if file.size > MAX_FILE_BYTES:
            raise ValidationError(
                _("The file has %(size)s. Select one of at most %(limit)s.")
                % {
                    "size": filesizeformat(file.size),
                    "limit": filesizeformat(MAX_FILE_BYTES),
                }
            )
        return encode_base64(file.read())


class WholeNumberField(forms.IntegerField):
    def clean(self, value: Any) -> Any:
        number = super().clean(value)
        return OMITTED if number is None else number


class NumberField(forms.FloatField):
    """A number; one without a point stays a whole number."""

    def clean(self, value: Any) -> Any:
        number = super().clean(value)
        if number is None:
            return OMITTED
        try:
            return int(value)
        except ValueError:
            return number


class JsonValueField(JsonField):
    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})
    empty_values = (None,)
    """Empty texts, lists and objects are values."""
    default_error_messages = {
        **JsonField.default_error_messages,
        "invalid": gettext_lazy(
            'Not valid JSON. Put text in quotes; write lists as ["a", "b"].'
        ),
    }

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, InvalidJSONInput):
            return super().prepare_value(value)
        return json.dumps(value, ensure_ascii=False, indent=2)

    def clean(self, value: Any) -> Any:
        if not (value or "").strip():
            if self.required:
                raise ValidationError(self.error_messages["required"], code="required")
            return OMITTED
        return super().clean(value)

    def validate(self, value: Any) -> None:
        """Take null, too: whether something was entered is checked before."""


class TextListField(JsonValueField):
    """A list of texts, one per line; JSON if lines cannot hold exactly this list."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "mono"})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            text = "\n".join(value)
            if value and parse_text_list(text) == value:
                return text
        return super().prepare_value(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return what was typed, which is shown again as it is."""
        return data if data is None else InvalidJSONInput(data)

    def clean(self, value: Any) -> Any:
        found = parse_text_list(value or "")
        return super().clean(json.dumps(found) if found else value)


def parse_text_list(text: str) -> list[Any]:
    """Return the list that is typed as JSON, or the lines that are not blank."""
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list):
            return found
    lines = text.replace("\r\n", "\n").split("\n")
    return [line for line in lines if line.strip()]


class ValueChoiceField(forms.Field):
    """A choice of values of any JSON type."""

    def __init__(self, values: list[Any], **more: Any) -> None:
        self.values = values
        self.words = [format_choice_label(value) for value in values]
        choices = [("", _("Select one") if more.get("required") else _("Omit"))]
        choices += [(word, word) for word in self.words]
        if more.get("initial") is not None:
            more["initial"] = format_choice_label(more["initial"])
        super().__init__(widget=forms.Select(choices=choices), **more)

    def clean(self, value: Any) -> Any:
        super().validate(value)
        if not value:
            return OMITTED
        if value not in self.words:
            raise ValidationError(
                _("Select one of the choices: “%(value)s” is not available.")
                % {"value": value}
            )
        return self.values[self.words.index(value)]


def format_choice_label(value: Any) -> str:
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    return str(value)
