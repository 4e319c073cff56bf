"""The form of one example, with a field for each input variable."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.services.datasets.content import (
    INPUT_FIELD,
    MAX_CELL_CHARS,
    MAX_NAME_CHARS,
    ExampleContent,
    get_cell_text,
    set_cell_text,
)
from runs.services.datasets.edit_cells import get_cell_token, get_cell_tokens
from runs.services.errors import ExampleConflict, ExampleRefused, RunsError
from tools.text.storable import is_storable

OTHER_CELLS = ("answer", "calls", "tags")
"""Besides the inputs."""


class ExampleForm(forms.Form):
    """Inputs, the expected answer, the expected calls and tags."""

    answer = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Expected answer"),
        widget=forms.Textarea(attrs={"rows": 5}),
    )
    calls = forms.CharField(
        required=False,
        label=gettext_lazy("Expected calls"),
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "mono", "spellcheck": "false"}
        ),
        help_text=gettext_lazy(
            "One tool per line, in order. Write the arguments as JSON after its name, "
            "or leave them out to expect any."
        ),
    )
    tags = forms.CharField(
        required=False,
        label=gettext_lazy("Tags"),
        help_text=gettext_lazy("Separated by commas."),
    )

    def __init__(
        self, names: list[str], content: ExampleContent, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.names = list(dict.fromkeys([*names, *content.inputs]))
        self.content = content
        # Columns may have been added meanwhile: the fields are those of the open page.
        self.seen = load_seen_cells(self.data.get("seen", ""), self.names)
        if self.seen:
            self.names = list_input_names(self.seen)
        inputs = {
            f"input-{n}": build_example_input_field(one)
            for n, one in enumerate(self.names)
        }
        self.fields = {**inputs, **self.fields}
        self.cell_names = {
            **{f"input-{n}": INPUT_FIELD + one for n, one in enumerate(self.names)},
            **{name: name for name in OTHER_CELLS},
        }
        cells = self.cell_names.values()
        self.seen = self.seen or get_cell_tokens(content, cells)
        for name, cell in self.cell_names.items():
            self.fields[name].initial = get_cell_text(content, cell)
            self.fields[name].widget.attrs["data-max-chars"] = MAX_CELL_CHARS
        style_widgets(self)

    @property
    def seen_token(self) -> str:
        """What the fields had when the page was opened, by cell."""
        return json.dumps(self.seen)

    @property
    def texts(self) -> dict[str, str]:
        """The valid texts by cell."""
        return {
            cell: self.cleaned_data.get(name, "")
            for name, cell in self.cell_names.items()
        }

    def input_fields(self) -> list[forms.BoundField]:
        return [self[f"input-{n}"] for n in range(len(self.names))]

    def clean(self) -> dict[str, Any]:
        """Validate each field as a cell of the table."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name, cell in self.cell_names.items():
            try:
                self.content = set_cell_text(self.content, cell, given.get(name, ""))
            except ExampleRefused as refused:
                self.add_error(name, str(refused))
        if not self.content.inputs and not self.errors:
            self.add_error("input-0", _("Enter an input."))
        return given

    def add_conflict(self, conflict: ExampleConflict) -> None:
        """Show at each field what is stored; saving again replaces that."""
        names = {cell: name for name, cell in self.cell_names.items()}
        for error in conflict.errors:
            self.add_error(names[error.field], error.message)
        for cell, text in conflict.stored.items():
            self.seen[cell] = get_cell_token(text)

    def add_service_error(self, refused: RunsError) -> None:
        self.add_error(None, str(refused))


def build_example_input_field(name: str) -> forms.Field:
    """Return the field of a variable; empty ones are left out of the example."""
    field = forms.CharField(
        required=False,
        strip=False,
        label=name,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    field.is_needed = True  # type: ignore[attr-defined]  # one of them has a value
    return field


def load_seen_cells(token: str, names: list[str]) -> dict[str, str]:
    """Return the tokens of a posted form by cell; empty if they cannot be read.

    An input is one of `names`, or a column that was removed since.
    """
    try:
        found = json.loads(token)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not set(OTHER_CELLS) <= set(found):
        return {}
    inputs = list_input_names(found)
    are_known = all(name in names or is_possible_name(name) for name in inputs)
    are_texts = all(isinstance(value, str) for value in found.values())
    is_whole = len(found) == len(inputs) + len(OTHER_CELLS)
    return found if inputs and are_known and are_texts and is_whole else {}


def list_input_names(cells: Iterable[str]) -> list[str]:
    return [
        cell.removeprefix(INPUT_FIELD) for cell in cells if cell.startswith(INPUT_FIELD)
    ]


def is_possible_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_CHARS and is_storable(name)
