"""The arguments of the test pane, as fields or as JSON."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from tools.audit.masking import has_secret_mask
from tools.forms.arguments import ArgumentsForm, find_nested_value
from tools.forms.arguments_json import (
    JsonArgumentsForm,
    turn_into_fields,
    turn_into_json,
)

TrialArguments = ArgumentsForm | JsonArgumentsForm


def open_typed_arguments(
    request: HttpRequest, schema: dict[str, Any] | None, *, values: Any = None
) -> TrialArguments:
    """Return the typed arguments, in the other form if the request switches to it.

    What cannot be shown there stays as it is, with an error. `values` replace what is
    typed.
    """
    given = request.POST
    if schema is None:  # a single text
        return open_fields(request, schema, values=values)
    if given.get("arguments_as") != "json":
        fields = open_fields(request, schema, values=values)
        if given.get("switch_to") == "json":
            return turn_into_json(fields) or fields
        return fields
    if values is not None:
        return JsonArgumentsForm(values=values)
    text = JsonArgumentsForm(given)
    if given.get("switch_to") == "form":
        return turn_into_fields(text, schema) or text
    return text


def open_fields(
    request: HttpRequest, schema: dict[str, Any] | None, *, values: Any
) -> ArgumentsForm:
    if values is not None:
        return ArgumentsForm(schema=schema, values=values)
    typed = ArgumentsForm(request.POST, request.FILES, schema=schema)
    typed.show_defaults()
    return typed


def mark_lost_secrets(arguments: TrialArguments, stored: Any) -> None:
    """Ask at each field for the secret that the stored arguments do not have."""
    paths: dict[str, tuple[str, ...]] = getattr(arguments, "paths", {})
    for label, field in arguments.fields.items():
        if has_secret_mask(find_nested_value(stored, paths.get(label, ()))):
            note = _("Secrets are not stored. Enter it again.")
            field.note = note  # type: ignore[attr-defined]  # for the template
