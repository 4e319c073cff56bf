"""The form that starts a run: one field for each variable of the agent's prompt."""

from collections.abc import Iterable
from typing import Any

from django import forms

from runs.forms.looks import dress
from runs.models import Agent
from runs.services.errors import FieldError
from runs.services.freeze_agent import freeze_agent, spec_of, variables_of_spec

PREFIX = "in-"


class RunForm(forms.Form):
    """The inputs of one run; the question is a large field, the others are small."""

    draft = forms.BooleanField(required=False, label="Run the draft, as a test")

    def __init__(
        self,
        agent: Agent,
        *args: Any,
        names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.agent = agent
        self.is_published = False
        self.names = tuple(names) if names is not None else self._names()
        for name in self.names:
            self.fields[name_of(name)] = field_for(name)
        self.order_fields([name_of(name) for name in self.names])
        dress(self)

    def _names(self) -> tuple[str, ...]:
        """Return the variables of what would run: the version, or the draft."""
        version = self.agent.versions.select_related("spec").first()
        self.is_published = version is not None
        typed = bool(self.data.get("draft"))
        if version is not None and not typed:
            return variables_of_spec(spec_of(version.spec))
        return variables_of_spec(freeze_agent(self.agent))

    def input_fields(self) -> list[forms.BoundField]:
        """Return the fields of the inputs, the question first."""
        return [self[name_of(name)] for name in self.names]

    def question(self) -> forms.BoundField | None:
        """Return the field of the question; None where the prompt takes none."""
        return self["input"] if "input" in self.names else None

    def other_fields(self) -> list[forms.BoundField]:
        """Return the fields of all other variables."""
        return [self[name_of(name)] for name in self.names if name != "input"]

    def inputs(self) -> dict[str, str]:
        """Return what was typed, by variable."""
        return {name: self.cleaned_data[name_of(name)] for name in self.names}

    def take(self, errors: Iterable[FieldError]) -> None:
        """Show each refusal at its field."""
        for field, message in errors:
            name = name_of(field)
            self.add_error(name if name in self.fields else None, message)


def name_of(variable: str) -> str:
    """Return the name of a variable's field; `input` keeps its own."""
    return variable if variable == "input" else PREFIX + variable


def field_for(variable: str) -> forms.CharField:
    """Return the field for one variable."""
    if variable == "input":
        widget = forms.Textarea(attrs={"rows": 3, "placeholder": "Ask or tell it …"})
        return forms.CharField(widget=widget, label="Question", strip=False)
    return forms.CharField(label=variable, widget=forms.Textarea(attrs={"rows": 1}))
