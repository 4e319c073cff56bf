"""Error messages that all forms share."""

from typing import Any

from django import forms
from django.forms.utils import pretty_name
from django.utils.functional import lazy
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _


def fill_in_field(message: Any, label: Any) -> str:
    return str(message) % {"field": label}


name_field = lazy(fill_in_field, str)
"""Return the message with the label of its field, in the language that is active."""


def set_error_messages(name: str, field: forms.Field, *, label: str = "") -> None:
    """Name the field in messages that a form does not set itself.

    Without `label`, as its own label or name with a capital letter. Forms share their
    declared fields, so a message is translated when it is shown.
    """
    messages: dict[str, Any] = field.error_messages
    own: Any = capfirst(field.label) if field.label else pretty_name(name)
    if messages.get("required") == forms.Field.default_error_messages["required"]:
        if name == "name":
            messages["required"] = _("Enter a name.")
        elif isinstance(field, forms.ChoiceField | forms.ModelChoiceField):
            messages["required"] = name_field(
                _("Select a value for “%(field)s”."), label or own
            )
        else:
            messages["required"] = name_field(
                _("Enter a value for “%(field)s”."), label or own
            )
    messages.setdefault("min_value", _("Enter %(limit_value)s or more."))
    messages.setdefault("max_value", _("Enter %(limit_value)s or less."))
