"""The form that starts a run: one field for each variable of the agent's prompt."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Agent
from runs.services.errors import FieldError
from runs.services.spec.freeze import freeze_agent, variables_of_spec
from runs.store.specs import load_spec

INPUT_PREFIX = "in-"


class RunForm(forms.Form):
    """The inputs of one run; the question is a large field, the others are small."""

    draft = forms.BooleanField(
        required=False, label=gettext_lazy("Run the draft as a test")
    )

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
        self.names = tuple(names) if names is not None else self._variable_names()
        for name in self.names:
            self.fields[input_field_name(name)] = build_run_input_field(name)
        if "input" in self.names:
            # For the keyboard of a phone, and the page's script: Enter sends.
            self.fields["input"].widget.attrs["enterkeyhint"] = "send"
        self.order_fields([input_field_name(name) for name in self.names])
        style_widgets(self)

    def _variable_names(self) -> tuple[str, ...]:
        """Return the variables of what would run: the version, or the draft."""
        version = self.agent.versions.select_related("spec").first()
        self.is_published = version is not None
        typed = bool(self.data.get("draft"))
        if version is not None and not typed:
            return variables_of_spec(load_spec(version.spec))
        return variables_of_spec(freeze_agent(self.agent))

    def input_fields(self) -> list[forms.BoundField]:
        """Return the fields of the inputs, the question first."""
        return [self[input_field_name(name)] for name in self.names]

    def question(self) -> forms.BoundField | None:
        """Return the field of the question; None if the prompt takes none."""
        return self["input"] if "input" in self.names else None

    def other_fields(self) -> list[forms.BoundField]:
        return [self[input_field_name(name)] for name in self.names if name != "input"]

    def inputs(self) -> dict[str, str]:
        return {name: self.cleaned_data[input_field_name(name)] for name in self.names}

    def add_field_errors(self, errors: Iterable[FieldError]) -> None:
        for field, message in errors:
            name = input_field_name(field)
            self.add_error(name if name in self.fields else None, message)


def input_field_name(variable: str) -> str:
    """Return the name of a variable's field; `input` keeps its own."""
    return variable if variable == "input" else INPUT_PREFIX + variable


def build_run_input_field(variable: str) -> forms.CharField:
    if variable == "input":
        widget = forms.Textarea(
            attrs={"rows": 3, "placeholder": _("Message the agent...")}
        )
        return forms.CharField(widget=widget, label=_("Question"), strip=False)
    return forms.CharField(label=variable, widget=forms.Textarea(attrs={"rows": 1}))
