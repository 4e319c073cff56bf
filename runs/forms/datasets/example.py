"""The form of one example, with a field for each input variable."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.services.datasets.content import (
    INPUT_FIELD,
    MAX_CELL_CHARS,
    ExampleContent,
    get_cell_text,
    set_cell_text,
)
from runs.services.errors import ExampleRefused, RunsError


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
        inputs = {
            f"input-{n}": build_example_input_field(one)
            for n, one in enumerate(self.names)
        }
        self.fields = {**inputs, **self.fields}
        self.cell_names = {
            **{f"input-{n}": INPUT_FIELD + one for n, one in enumerate(self.names)},
            **{name: name for name in ("answer", "calls", "tags")},
        }
        for name, cell in self.cell_names.items():
            self.fields[name].initial = get_cell_text(content, cell)
            self.fields[name].widget.attrs["data-max-chars"] = MAX_CELL_CHARS
        style_widgets(self)

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
