"""A form made from the schema of a tool's arguments, for trying it out."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tools.argument_kind import kind_of, without_null
from tools.forms.fields import JsonField
from tools.forms.missing import say_what_is_right

ONE_TEXT = "input"
"""Name of the field of a tool that takes one text."""

LEFT_OUT = object()


class ArgumentsForm(forms.Form):
    """One field an argument; what is left empty is not sent."""

    prefix = "arg"

    def __init__(self, data: Any = None, *, schema: dict[str, Any] | None) -> None:
        super().__init__(data)
        self.schema = schema
        if schema is None:
            text = forms.CharField(
                label="Input",
                required=False,
                strip=False,
                widget=forms.Textarea(attrs={"rows": 3}),
            )
            text.kind = "text"  # type: ignore[attr-defined]  # for the template
            self.fields[ONE_TEXT] = text
            return
        required = schema.get("required", [])
        for name, part in schema.get("properties", {}).items():
            if isinstance(part, dict):
                field = field_of(part, required=name in required)
                field.label, field.kind = name, kind_of(part)  # type: ignore[attr-defined]  # for the template
                field.help_text = str(part.get("description", ""))
                say_what_is_right(name, field)
                self.fields[name] = field

    def tool_input(self) -> Any:
        """Return the arguments as a model would send them."""
        if self.schema is None:
            return self.cleaned_data[ONE_TEXT]
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if value is not LEFT_OUT
        }


def field_of(part: dict[str, Any], *, required: bool) -> forms.Field:
    """Return the field for one argument."""
    part = without_null(part)
    kind = part.get("type")
    initial = part.get("default")
    if isinstance(part.get("enum"), list):
        return OneOfField(part["enum"], required=required, initial=initial)
    if kind == "boolean":
        return OneOfField([True, False], required=required, initial=initial)
    if kind == "integer":
        return WholeNumberField(required=required, initial=initial)
    if kind == "number":
        return NumberField(required=required, initial=initial)
    if kind == "string":
        return TextField(required=required, initial=initial)
    return JsonValueField(required=required, initial=initial)


class TextField(forms.CharField):
    """A text; an empty one is left out where it may be."""

    widget = forms.Textarea(attrs={"rows": 1})

    def __init__(self, **more: Any) -> None:
        super().__init__(strip=False, **more)

    def clean(self, value: Any) -> Any:
        """Return the text or nothing."""
        return super().clean(value) or LEFT_OUT


class WholeNumberField(forms.IntegerField):
    """A whole number or nothing."""

    def clean(self, value: Any) -> Any:
        """Return the number or nothing."""
        number = super().clean(value)
        return LEFT_OUT if number is None else number


class NumberField(forms.FloatField):
    """A number or nothing."""

    def clean(self, value: Any) -> Any:
        """Return the number or nothing."""
        number = super().clean(value)
        return LEFT_OUT if number is None else number


class JsonValueField(JsonField):
    """Any JSON value or nothing."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})
    empty_values = (None,)
    """An empty text, list or object is a value."""
    default_error_messages = {
        **JsonField.default_error_messages,
        "invalid": 'This is not JSON. Write texts in quotes, lists as ["a", "b"].',
    }

    def clean(self, value: Any) -> Any:
        """Return the value or nothing."""
        if not (value or "").strip():
            if self.required:
                raise ValidationError(self.error_messages["required"], code="required")
            return LEFT_OUT
        return super().clean(value)


class OneOfField(forms.Field):
    """One of some values, whatever their type."""

    def __init__(self, values: list[Any], **more: Any) -> None:
        self.values = values
        self.words = [word_of(value) for value in values]
        choices = [("", "left out" if not more.get("required") else "choose one")]
        choices += [(word, word) for word in self.words]
        if more.get("initial") is not None:
            more["initial"] = word_of(more["initial"])
        super().__init__(widget=forms.Select(choices=choices), **more)

    def clean(self, value: Any) -> Any:
        """Return the value behind the word."""
        super().validate(value)
        if not value:
            return LEFT_OUT
        if value not in self.words:
            raise ValidationError(f"{value!r} is not one of the choices.")
        return self.values[self.words.index(value)]


def word_of(value: Any) -> str:
    """Return how a value reads in a list of choices."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
