"""What all forms share: the look of their inputs, and our sentences."""

from typing import Any

from django import forms

PLAIN = (forms.CheckboxInput, forms.RadioSelect, forms.CheckboxSelectMultiple)


def mono(rows: int) -> forms.Textarea:
    """Return an area of `rows` lines for text that is no prose: each sign as wide."""
    return forms.Textarea(attrs={"rows": rows, "class": "mono"})


def dress(form: forms.BaseForm) -> None:
    """Give each plain input the class `input`, and each field our sentences."""
    for name, field in form.fields.items():
        say_what_is_right(name, field)
        if isinstance(field.widget, PLAIN):
            continue
        attrs: dict[str, Any] = field.widget.attrs
        attrs["class"] = f"input {attrs.get('class', '')}".strip()


def say_what_is_right(name: str, field: forms.Field) -> None:
    """Put what to do in the place of Django's usual words; a form's own stay."""
    told: dict[str, Any] = field.error_messages
    if told.get("required") == forms.Field.default_error_messages["required"]:
        told["required"] = "Give it a name." if name == "name" else "Fill this in."
    if isinstance(field, forms.ChoiceField | forms.ModelChoiceField):
        told["required"] = "Choose one."
    told.setdefault("min_value", "%(limit_value)s or more.")
    told.setdefault("max_value", "%(limit_value)s or less.")
