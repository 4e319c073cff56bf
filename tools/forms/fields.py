"""Form fields for hosts, JSON and pairs of names and values."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.ownership import Visibility
from tools.text.parse_errors import find_json_error
from tools.text.storable import is_storable

HOST_PATTERN = re.compile(
    r"(\*\.)?(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*|\[?[0-9a-f:]+\]?"
)
BINDING_PATTERN = re.compile(
    r"(https?://)?((\*\.)?(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*|\[[0-9a-f:]+\])"
    r"(:[1-9][0-9]{0,4})?|[0-9a-f:]+"
)


class HostsField(forms.CharField):
    """Host names, one per line, stored as a list."""

    widget = forms.Textarea(attrs={"rows": 3})
    pattern = HOST_PATTERN
    mistake = gettext_lazy(
        "“%(name)s” is not a host name. Enter names such as api.example.com or "
        "*.example.com, one per line, without https:// and port."
    )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        names = [name.lower() for name in re.split(r"[\s,]+", str(value or "")) if name]
        for name in names:
            if not self.pattern.fullmatch(name):
                raise ValidationError(self.mistake % {"name": name})
        return names

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(initial or [], data)


class BindingsField(HostsField):
    """Host names with scheme and port if these are not HTTPS and 443."""

    pattern = BINDING_PATTERN
    mistake = gettext_lazy(
        "“%(name)s” is not a host. Enter hosts such as api.example.com, "
        "*.example.com:8443 or http://localhost:8080, one per line, without a path."
    )


class JsonField(forms.JSONField):
    """JSON; None is shown as an empty text, not as `null`."""

    default_error_messages = {
        "invalid": gettext_lazy("Not valid JSON."),
        "too_much": gettext_lazy(
            "The JSON is nested too deeply or has a number that is too long."
        ),
        "unstorable": gettext_lazy(
            "The JSON has a number or a character that cannot be stored."
        ),
    }

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
        except ValidationError as error:
            said = f"{error.messages[0]} {find_json_error(str(value))}".rstrip()
            raise ValidationError(said, code=error.code) from None
        except (ValueError, RecursionError):
            raise ValidationError(
                self.error_messages["too_much"], code="too_much"
            ) from None
        if not is_storable(found):
            raise ValidationError(self.error_messages["unstorable"], code="unstorable")
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            found = super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)
        return found if is_storable(found) else InvalidJSONInput(data)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare values; invalid JSON counts as changed."""
        try:
            return super().has_changed(initial, data)
        except ValidationError:
            return True


class PairsField(forms.CharField):
    """Names and values, one pair per line, stored as an object."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})

    def __init__(self, *, separator: str, **more: Any) -> None:
        self.separator = separator
        super().__init__(**more)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        space = " " if self.separator == ":" else ""
        return "\n".join(f"{k}{self.separator}{space}{v}" for k, v in value.items())

    def to_python(self, value: Any) -> Any:
        pairs: dict[str, str] = {}
        for line in filter(str.strip, str(value or "").splitlines()):
            name, found, text = line.partition(self.separator)
            if not found or not name.strip():
                raise ValidationError(
                    _("“%(line)s” is not a pair. Write name%(separator)s value.")
                    % {"line": line.strip(), "separator": self.separator}
                )
            pairs[name.strip()] = text.strip()
        return pairs

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(initial or {}, data)


def require_group_if_shared(form: forms.BaseForm) -> None:
    given = form.cleaned_data
    if (
        "groups" in form.fields
        and given.get("visibility") == Visibility.GROUPS
        and not given.get("groups")
    ):
        form.add_error("groups", _("Select at least one group."))
