"""What all forms say of a field that was left empty, or has too much."""

from typing import Any

from django import forms
from django.forms.utils import pretty_name
from django.utils.text import capfirst


def say_what_is_right(name: str, field: forms.Field) -> None:
    """Put what to do in the place of Django's usual words; a form's own stay."""
    told: dict[str, Any] = field.error_messages
    label = capfirst(str(field.label or pretty_name(name)))
    is_choice = isinstance(field, forms.ChoiceField | forms.ModelChoiceField)
    if told.get("required") == forms.Field.default_error_messages["required"]:
        if name == "name":
            told["required"] = "Give it a name."
        elif is_choice:
            told["required"] = f"{label}: choose one."
        else:
            told["required"] = f"{label} is empty: fill it in."
    told.setdefault("min_value", "%(limit_value)s or more.")
    told.setdefault("max_value", "%(limit_value)s or less.")
