"""Form fields for the JSON body of a request."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from tools.forms.fields import PairsField
from tools.text.storable import is_storable, refuse_json_constant


class JsonEditor(forms.Widget):
    """JSON text that is also checked while the person types."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        context = {"name": name, "value": value, "attrs": attrs or {}}
        return render_to_string("tools/_json.html", context)


class FlatJsonField(PairsField):
    """The members of a JSON object, one per line, as plain text or JSON."""

    def __init__(self, **more: Any) -> None:
        super().__init__(separator=":", **more)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return super().prepare_value(
            {k: format_flat_value(v) for k, v in value.items()}
        )

    def to_python(self, value: Any) -> Any:
        found = {
            name: parse_flat_value(text)
            for name, text in super().to_python(value).items()
        }
        if not is_storable(found):
            raise ValidationError(
                _("The JSON has a number or a character that cannot be stored.")
            )
        return found


def is_flat_object(body: Any) -> bool:
    """Whether an object can be edited as lines: nothing nested, no unusual names."""
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


def format_flat_value(value: Any) -> str:
    """Return a value as one line; text that looks like JSON is quoted."""
    is_plain = isinstance(value, str) and re.fullmatch(r"\S(.*\S)?", value)
    if is_plain and len(value.splitlines()) == 1 and parse_flat_value(value) == value:
        return str(value)
    return json.dumps(value)


def parse_flat_value(text: str) -> Any:
    """Return a line as JSON, or as text if it is not JSON."""
    try:
        return json.loads(text, parse_constant=refuse_json_constant)
    except (ValueError, RecursionError):
        return text
