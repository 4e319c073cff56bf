"""Editing the arguments of a call before it is approved: a field each, or JSON."""

import json
import re
from typing import Any

from runs.forms.widgets import style_widgets
from runs.services.errors import ArgumentsRefused, FieldError
from tools.forms.arguments import ArgumentsForm
from tools.text.parse_errors import NOT_JSON, find_json_error
from tools.text.storable import is_same_json

BREAKS = re.compile(r"\r\n?|\n")
"""Line breaks, all of which browsers send as CRLF."""


class EditedArgumentsForm(ArgumentsForm):
    """The arguments of one call; several such forms fit on one page."""

    use_required_attribute = False
    takes_files = False

    def __init__(
        self, data: Any = None, *, schema: dict[str, Any], shown: Any, key: int
    ) -> None:
        self.prefix = f"arg-{key}"
        super().__init__(data, schema=schema, values=shown)
        style_widgets(self)

    def focus_error(self) -> None:
        """Let the page open at the first field with an error."""
        for name in self.errors:
            self.fields[name].widget.attrs["autofocus"] = True
            return

    def list_refusals(self) -> list[FieldError]:
        return [
            FieldError(str(self.fields[name].label), str(error))
            for name, errors in self.errors.items()
            for error in errors
        ]


def build_edit_form(
    schema: dict[str, Any] | None, shown: Any, *, key: int
) -> EditedArgumentsForm | None:
    """Return the form; None if its fields cannot express exactly what is shown."""
    if schema is None or not isinstance(shown, dict):
        return None
    form = EditedArgumentsForm(schema=schema, shown=shown, key=key)
    unchanged = {
        one.html_name: BREAKS.sub("\r\n", str(one.value()))
        for one in form
        if one.value() is not None
    }
    typed = EditedArgumentsForm(unchanged, schema=schema, shown=shown, key=key)
    if not form.fields or not typed.is_valid():
        return None
    return form if is_same_json(typed.tool_input(), shown) else None


def parse_edited_fields(form: EditedArgumentsForm, shown: Any) -> Any:
    """Return the typed arguments; None if nothing was changed."""
    if not form.is_valid():
        raise ArgumentsRefused(form.list_refusals())
    typed = form.tool_input()
    return None if is_same_json(typed, shown) else typed


def parse_edited_text(text: str, shown: Any) -> Any:
    """Return the arguments typed as one text; None if nothing was changed."""
    if isinstance(shown, str):
        plain = BREAKS.sub("\n", text)
        return None if plain == BREAKS.sub("\n", shown) else plain
    try:
        typed = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"{NOT_JSON} {find_json_error(text)}"
        raise ArgumentsRefused([FieldError("", why)]) from error
    return None if is_same_json(typed, shown) else typed
