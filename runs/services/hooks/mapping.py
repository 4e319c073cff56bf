"""Make the inputs of a run from the body of a request.

For each variable there is a text in which `{/pointer}`, a JSON pointer, stands for a
value of the body, and `{}` for the whole body.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _

from runs.models import Hook
from runs.services.errors import FieldError, InputsRefused, RunsError
from runs.services.runs.start import MAX_INPUT_LENGTH
from tools.errors import ToolFailed
from tools.text.json_pointer import parse_json_pointer, resolve_json_pointer

PLACEHOLDER = re.compile(r"\{(|/[^{}]*)\}")
FORM_TYPE = "application/x-www-form-urlencoded"
MAX_FORM_FIELDS = 1_000
MAX_TOTAL_LENGTH = 4 * MAX_INPUT_LENGTH
"""Characters of all inputs of a request together."""


class BodyUnreadable(RunsError):
    """The body of a request is neither JSON nor a form."""


class TextTooLong(ToolFailed):
    """A text with its values has more characters than an input may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            _("The text has more than %(limit)s characters. Select smaller values.")
            % {"limit": f"{limit:,}"}
        )


class ValueTooDeep(ToolFailed):
    """A value is nested too deeply to be written as JSON."""

    def __init__(self) -> None:
        super().__init__(_("The value is nested too deeply. Select a part of it."))


def parse_hook_body(body: bytes, content_type: str) -> Any:
    """Return the JSON of a body; a form is an object of its fields.

    JSON in the only field of a form, as Slack sends its actions, is read too.
    """
    if content_type.partition(";")[0].strip().lower() == FORM_TYPE:
        return _parse_form(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BodyUnreadable(
            _("The body is not valid JSON. Send application/json or a form.")
        ) from None


def _parse_form(body: bytes) -> Any:
    try:
        fields = dict(
            parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS
            )
        )
        if list(fields) == ["payload"]:
            return json.loads(fields["payload"])
    except (ValueError, RecursionError):
        raise BodyUnreadable(_("The body is not a valid form.")) from None
    return fields


def map_inputs(templates: Mapping[str, str], document: Any) -> dict[str, str]:
    """Return the inputs; raise `InputsRefused` with every value that is missing."""
    inputs, errors, total = {}, [], 0
    for name, template in templates.items():
        try:
            inputs[name] = fill_template(template, document)
            total += len(inputs[name])
            if total > MAX_TOTAL_LENGTH:
                raise TextTooLong(MAX_TOTAL_LENGTH)
        except TextTooLong as error:
            raise InputsRefused([FieldError(name, f"{name}: {error}")]) from None
        except ToolFailed as error:
            errors.append(FieldError(name, f"{name}: {error}"))
    if errors:
        raise InputsRefused(errors)
    return inputs


def fill_template(template: str, document: Any) -> str:
    """Return the text with values in place of pointers; raise `ToolFailed`.

    The length is checked before the text is put together, as `{}` may stand in it
    thousands of times.
    """
    values: dict[str, str] = {}
    length = len(PLACEHOLDER.sub("", template))

    def replace(found: re.Match[str]) -> str:
        nonlocal length
        pointer = found[1]
        if pointer not in values:
            value = resolve_json_pointer(document, pointer)
            values[pointer] = format_json_value(value)
        length += len(values[pointer])
        if length > MAX_INPUT_LENGTH:
            raise TextTooLong(MAX_INPUT_LENGTH)
        return values[pointer]

    return PLACEHOLDER.sub(replace, template)


def format_json_value(value: Any) -> str:
    """Return a value as a person would write it: text as it is, the rest as JSON.

    JSON that would be too long with indentation, or is too deep for it, has none.
    Raise `TextTooLong` or `ValueTooDeep`.
    """
    if isinstance(value, str):
        return value
    try:
        text = _indent_json(value) or json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise ValueTooDeep from None
    if len(text) > MAX_INPUT_LENGTH:
        raise TextTooLong(MAX_INPUT_LENGTH)
    return text


def _indent_json(value: Any) -> str:
    """Return JSON with indentation; empty if it is too long or too deep.

    Indentation grows with the square of the depth, so it is counted as it comes.
    """
    parts, length = [], 0
    try:
        for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
            parts.append(part)
            length += len(part)
            if length > MAX_INPUT_LENGTH:
                return ""
    except RecursionError:
        return ""
    return "".join(parts)


def explain_mismatch(hook: Hook, document: Any) -> str:
    """Return why a body does not meet the hook's condition; empty if it does."""
    if not hook.only_pointer:
        return ""
    try:
        value = format_json_value(resolve_json_pointer(document, hook.only_pointer))
    except ToolFailed as error:
        return str(error)
    wanted = [one.strip() for one in hook.only_value.split(",")]
    if value in wanted:
        return ""
    return _("%(pointer)s is %(value)s, not %(wanted)s.") % {
        "pointer": hook.only_pointer,
        "value": repr(value[:100]),
        "wanted": hook.only_value,
    }


def find_pointer_flaw(template: str) -> str:
    """Return what is wrong with the pointers of a text; empty if nothing is."""
    for found in PLACEHOLDER.finditer(template):
        try:
            parse_json_pointer(found[1])
        except ToolFailed as error:
            return str(error)
    return ""
