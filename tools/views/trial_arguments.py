"""The arguments of the test pane, as fields or as JSON."""

from typing import Any

from django.http import HttpRequest

from tools.forms.arguments import ArgumentsForm
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
    return ArgumentsForm(request.POST, request.FILES, schema=schema)
