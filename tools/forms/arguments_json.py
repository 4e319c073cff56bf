"""The arguments of a trial as one JSON text, and the way from and to their form."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.forms.arguments import ArgumentsForm, ContentField
from tools.forms.fields import JsonField

MAX_NAME = 100
"""Characters of a name that an error shows."""


class JsonObjectField(forms.CharField):
    """A JSON object, shown as it was typed; an empty text is an empty object."""

    widget = forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        found = JsonField(required=False).clean(text) if text.strip() else {}
        if not isinstance(found, dict):
            raise ValidationError(
                _('Enter a JSON object such as {"city": "Oslo"}.'), code="no_object"
            )
        return found


class JsonArgumentsForm(forms.Form):
    """All arguments in one text, sent as typed."""

    prefix = "arguments"
    is_checked = True
    """Whether errors are shown; not while the schema is still being written."""

    json = JsonObjectField(
        label=gettext_lazy("Arguments as JSON"), required=False, strip=False
    )

    def __init__(self, data: Any = None, *, values: Any = None) -> None:
        """Open the form; it begins with the arguments `values`."""
        begin = {} if values is None else {"json": format_arguments_json(values)}
        super().__init__(data, initial=begin)

    def tool_input(self) -> Any:
        return self.cleaned_data["json"]


def format_arguments_json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False)


def turn_into_json(typed: ArgumentsForm) -> JsonArgumentsForm | None:
    """Return what the fields contain as JSON; None if a field has an error.

    Arguments that are still missing are not errors.
    """
    for errors in typed.errors.as_data().values():
        if any(error.code != "required" for error in errors):
            return None
    return JsonArgumentsForm(values=typed.tool_input())


def turn_into_fields(
    typed: JsonArgumentsForm, schema: dict[str, Any]
) -> ArgumentsForm | None:
    """Return the fields with the typed arguments; None if they would lose any.

    Then `typed` has an error that says why.
    """
    if not typed.is_valid():
        return None
    values = typed.tool_input()
    fields = ArgumentsForm(schema=schema, values=values)
    sent = ArgumentsForm(list_sent_texts(fields), {}, schema=schema)
    sent.full_clean()
    kept = sent.tool_input()
    known = {path[0] for path in fields.paths.values()}
    for name, value in values.items():
        if name in kept and is_contained(value, kept[name]):
            continue
        reason = (
            _("The form cannot show the value of “%(name)s”. Change it or keep JSON.")
            if name in known
            else _("The form has no field for “%(name)s”. Remove it or keep JSON.")
        )
        typed.add_error("json", reason % {"name": name[:MAX_NAME]})
        return None
    return fields


def list_sent_texts(form: ArgumentsForm) -> dict[str, str]:
    """Return what a browser sends of an open form, by the names of its fields."""
    sent = {}
    for label, field in form.fields.items():
        if isinstance(field, ContentField) or form.initial.get(label) is None:
            continue
        text = str(form[label].value())
        sent[form.add_prefix(label)] = text.replace("\r\n", "\n").replace("\r", "\n")
    return sent


def is_contained(given: Any, kept: Any) -> bool:
    """Whether `kept` has all of `given`; it may also have required objects."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return all(
            key in kept and is_contained(one, kept[key]) for key, one in given.items()
        )
    if isinstance(given, list) and isinstance(kept, list):
        return len(given) == len(kept) and all(map(is_contained, given, kept))
    return isinstance(given, bool) == isinstance(kept, bool) and bool(given == kept)
