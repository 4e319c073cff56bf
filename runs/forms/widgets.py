"""Styling and error messages shared by all forms."""

from typing import Any

from django import forms
from django.db.models.fields import BLANK_CHOICE_DASH
from django.utils.translation import gettext as _

from tools.forms.error_messages import set_error_messages

UNSTYLED_WIDGETS = (
    forms.CheckboxInput,
    forms.RadioSelect,
    forms.CheckboxSelectMultiple,
)


def monospace_textarea(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "class": "mono"})


def style_widgets(form: forms.BaseForm) -> None:
    """Give each plain input the class `input`, and each field our texts."""
    for name, field in form.fields.items():
        set_error_messages(name, field)
        _name_empty_choice(field)
        if isinstance(field.widget, UNSTYLED_WIDGETS):
            continue
        attrs: dict[str, Any] = field.widget.attrs
        attrs["class"] = f"input {attrs.get('class', '')}".strip()


def _name_empty_choice(field: forms.Field) -> None:
    """Replace the dashes that Django offers as the choice of nothing."""
    if not isinstance(field, forms.ModelChoiceField):
        return
    if field.empty_label == BLANK_CHOICE_DASH[0][1]:
        field.empty_label = _("Select one") if field.required else _("None")
