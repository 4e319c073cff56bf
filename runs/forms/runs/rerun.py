"""The form that runs something again: the same agent or the newest, inputs to edit."""

from typing import Any

from django import forms

from runs.forms.looks import dress
from runs.forms.run import field_for, name_of
from runs.models import Run
from runs.services.errors import FieldError

SAME, NEWEST = "same", "newest"


class AgainForm(forms.Form):
    """Inputs as they were; those that only one of the two agents takes are marked.

    What was not sent at all is taken from the run.
    """

    which = forms.ChoiceField(
        choices=[(SAME, "The same agent"), (NEWEST, "The newest agent")],
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
            field = field_for(name)
            field.required, field.initial = False, run.inputs.get(name, "")
            field.is_needed = True  # type: ignore[attr-defined]  # checked by the service
            if name not in same:
                field.help_text = "Only the newest agent asks for this."
            elif name not in newest:
                field.help_text = "Only the agent as it was asks for this."
            self.fields[name_of(name)] = field
        dress(self)

    def input_fields(self) -> list[forms.BoundField]:
        """Return the fields of the inputs."""
        return [self[name] for name in self.fields if name != "which"]

    @property
    def chosen(self) -> str:
        """Which agent is to run."""
        return SAME if self.cleaned_data.get("which") == SAME else NEWEST

    def inputs(self) -> dict[str, str]:
        """Return the inputs that the chosen agent takes."""
        found = {}
        for name in self.names[self.chosen]:
            field = name_of(name)
            typed = self.cleaned_data[field] if field in self.data else None
            value = self.run.inputs.get(name) if typed is None else typed
            if value is not None:
                found[name] = value
        return found

    def take(self, errors: list[FieldError]) -> None:
        """Show each refusal at its field."""
        for field, message in errors:
            name = name_of(field)
            self.add_error(name if name in self.fields else None, message)
