"""Form fields for what tools are made of."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput

from tools.ownership import Visibility
from tools.storable import is_storable
from tools.text_flaw import NO_JSON, json_flaw

HOST = re.compile(r"(\*\.)?(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*|\[?[0-9a-f:]+\]?")


class HostsField(forms.CharField):
    """Host names, one a line; kept as a list."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        """Show a list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Return the host names; refuse what is none."""
        names = [name.lower() for name in re.split(r"[\s,]+", str(value or "")) if name]
        for name in names:
            if not HOST.fullmatch(name):
                raise ValidationError(
                    f"{name!r} is no host name. Write names such as api.example.com "
                    "or *.example.com, one a line, without https:// and port."
                )
        return names

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare lists."""
        return bool((initial or []) != self.to_python(data))


class JsonField(forms.JSONField):
    """JSON; nothing is shown as nothing, not as `null`."""

    default_error_messages = {
        "invalid": NO_JSON,
        "too_much": "It is nested too deeply, or has a number that is too long.",
        "unstorable": "It has a number or a character that cannot be stored.",
    }

    def prepare_value(self, value: Any) -> Any:
        """Show nothing for None."""
        return "" if value is None else super().prepare_value(value)

    def to_python(self, value: Any) -> Any:
        """Return the value; refuse what could not be stored."""
        try:
            found = super().to_python(value)
        except ValidationError as error:
            said = f"{error.messages[0]} {json_flaw(str(value))}".rstrip()
            raise ValidationError(said, code=error.code) from None
        except (ValueError, RecursionError):
            raise ValidationError(
                self.error_messages["too_much"], code="too_much"
            ) from None
        if not is_storable(found):
            raise ValidationError(self.error_messages["unstorable"], code="unstorable")
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return what was typed in the way it is shown again."""
        try:
            found = super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)
        return found if is_storable(found) else InvalidJSONInput(data)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare values; what cannot be read has changed."""
        try:
            return super().has_changed(initial, data)
        except ValidationError:
            return True


class PairsField(forms.CharField):
    """Names and values, a pair a line; kept as an object."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})

    def __init__(self, *, separator: str, **more: Any) -> None:
        self.separator = separator
        super().__init__(**more)

    def prepare_value(self, value: Any) -> Any:
        """Show an object as lines."""
        if not isinstance(value, dict):
            return value
        space = " " if self.separator == ":" else ""
        return "\n".join(f"{k}{self.separator}{space}{v}" for k, v in value.items())

    def to_python(self, value: Any) -> Any:
        """Return the pairs; refuse a line that is none."""
        pairs: dict[str, str] = {}
        for line in filter(str.strip, str(value or "").splitlines()):
            name, found, text = line.partition(self.separator)
            if not found or not name.strip():
                raise ValidationError(
                    f"{line.strip()!r} is no pair; write name{self.separator} value."
                )
            pairs[name.strip()] = text.strip()
        return pairs

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare objects."""
        return bool((initial or {}) != self.to_python(data))


def check_groups(form: forms.BaseForm) -> None:
    """Ask for a group where a definition is shared with groups."""
    given = form.cleaned_data
    if (
        "groups" in form.fields
        and given.get("visibility") == Visibility.GROUPS
        and not given.get("groups")
    ):
        form.add_error("groups", "Choose at least one group.")
