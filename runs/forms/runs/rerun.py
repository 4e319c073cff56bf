"""The form that runs something again: the same agent or the newest, inputs to edit."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.runs.inputs import build_run_input_field, input_field_name
from runs.forms.widgets import style_widgets
from runs.models import Run
from runs.services.errors import FieldError

SAME, NEWEST = "same", "newest"


class RerunForm(forms.Form):
    """Inputs as they were; those that only one of the two agents takes are marked.

    What was not sent at all is taken from the run.
    """

    which = forms.ChoiceField(
        choices=[
            (SAME, gettext_lazy("The same agent")),
            (NEWEST, gettext_lazy("The latest agent")),
        ],
        widget=forms.RadioSelect,
        required=False,
    )

    def __init__(
        self,
        run: Run,
        *args: Any,
        same: tuple[str, ...],
        newest: tuple[str, ...],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.run, self.names = run, {SAME: same, NEWEST: newest}
        self.initial.setdefault("which", NEWEST)
        for name in dict.fromkeys([*same, *newest]):
            field = build_run_input_field(name)
            field.required, field.initial = False, run.inputs.get(name, "")
            field.is_needed = True  # type: ignore[attr-defined]  # checked by the service
            if name not in same:
                field.help_text = _("Used only by the latest agent.")
            elif name not in newest:
                field.help_text = _("Used only by the same agent.")
            self.fields[input_field_name(name)] = field
        style_widgets(self)

    def input_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name != "which"]

    @property
    def selected_agent(self) -> str:
        return SAME if self.cleaned_data.get("which") == SAME else NEWEST

    def inputs(self) -> dict[str, str]:
        found = {}
        for name in self.names[self.selected_agent]:
            field = input_field_name(name)
            typed = self.cleaned_data[field] if field in self.data else None
            value = self.run.inputs.get(name) if typed is None else typed
            if value is not None:
                found[name] = value
        return found

    def add_field_errors(self, errors: list[FieldError]) -> None:
        for field, message in errors:
            name = input_field_name(field)
            self.add_error(name if name in self.fields else None, message)
