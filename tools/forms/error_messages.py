"""Error messages that all forms share."""

from typing import Any

from django import forms
from django.forms.utils import pretty_name
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


def set_error_messages(name: str, field: forms.Field) -> None:
    """Name the field in messages that a form does not set itself."""
    told: dict[str, Any] = field.error_messages
    label = capfirst(str(field.label or pretty_name(name)))
    is_choice = isinstance(field, forms.ChoiceField | forms.ModelChoiceField)
    if told.get("required") == forms.Field.default_error_messages["required"]:
        if name == "name":
            told["required"] = _("Enter a name.")
        elif is_choice:
            told["required"] = _("Select a value for “%(field)s”.") % {"field": label}
        else:
            told["required"] = _("Enter a value for “%(field)s”.") % {"field": label}
    told.setdefault("min_value", gettext_lazy("Enter %(limit_value)s or more."))
    told.setdefault("max_value", gettext_lazy("Enter %(limit_value)s or less."))
