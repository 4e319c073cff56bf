"""The fields in which the JSON body of a request is written."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from tools.forms.fields import PairsField
from tools.storable import is_storable


class JsonEditor(forms.Widget):
    """A text of JSON that is checked as one types; the form checks it in any case."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        """Return the text with the place for what is wrong with it."""
        context = {"name": name, "value": value, "attrs": attrs or {}}
        return render_to_string("tools/_json.html", context)


class FlatJsonField(PairsField):
    """The members of a JSON object, one a line: texts as they are, or any JSON."""

    def __init__(self, **more: Any) -> None:
        super().__init__(separator=":", **more)

    def prepare_value(self, value: Any) -> Any:
        """Show an object as lines."""
        if not isinstance(value, dict):
            return value
        return super().prepare_value({k: written(v) for k, v in value.items()})

    def to_python(self, value: Any) -> Any:
        """Return the object; refuse what could not be stored."""
        found = {name: read(text) for name, text in super().to_python(value).items()}
        if not is_storable(found):
            raise ValidationError(
                "It has a number or a character that cannot be stored."
            )
        return found


def is_flat(body: Any) -> bool:
    """Whether an object says the same as lines: nothing nested, no odd names."""
    if not isinstance(body, dict):
        return False
    if any(isinstance(value, dict | list) for value in body.values()):
        return False
    field = FlatJsonField(required=False)
    try:
        again = field.to_python(field.prepare_value(body))
    except ValidationError:
        return False
    return json.dumps(again) == json.dumps(body)


def written(value: Any) -> str:
    """Return a value for one line: a text as it is, where it is not taken for JSON."""
    is_plain = isinstance(value, str) and re.fullmatch(r"\S(.*\S)?", value)
    if is_plain and len(value.splitlines()) == 1 and read(value) == value:
        return str(value)
    return json.dumps(value)


def read(text: str) -> Any:
    """Return the value a line holds: JSON, or else the text itself."""
    try:
        return json.loads(text, parse_constant=no_number)
    except (ValueError, RecursionError):
        return text


def no_number(name: str) -> Any:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(name)
