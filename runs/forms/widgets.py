"""What all forms share: the look of their inputs, and our sentences."""

from typing import Any

from django import forms

from tools.forms.missing import say_what_is_right

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
