"""Styling and error messages shared by all forms."""

from typing import Any

from django import forms

from tools.forms.error_messages import set_error_messages

UNSTYLED_WIDGETS = (
    forms.CheckboxInput,
    forms.RadioSelect,
    forms.CheckboxSelectMultiple,
)


def monospace_textarea(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "class": "mono"})


def style_widgets(form: forms.BaseForm) -> None:
    """Give each plain input the class `input`, and each field our error messages."""
    for name, field in form.fields.items():
        set_error_messages(name, field)
        if isinstance(field.widget, UNSTYLED_WIDGETS):
            continue
        attrs: dict[str, Any] = field.widget.attrs
        attrs["class"] = f"input {attrs.get('class', '')}".strip()
