"""The form of a comparison: one question, up to four versions or models."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from runs.forms.runs.inputs import RunForm
from runs.forms.widgets import style_widgets
from runs.models import Agent, AgentVersion, Provider
from runs.services.agents.trials import TrialVariant
from runs.services.providers.model_choices import (
    ModelChoice,
    find_model_choice,
    list_model_choices,
)
from runs.services.spec.freeze import freeze_agent, variables_of_spec
from runs.store.specs import load_spec

MAX_COLUMNS = 4
DRAFT = "draft"
EMPTY_COLUMN = ""


class ComparisonForm(RunForm):
    """The inputs, and the version and model of each column."""

    def __init__(
        self, agent: Agent, *args: Any, user: User, initial: Any = None, **kwargs: Any
    ) -> None:
        self.versions = list(agent.versions.select_related("spec")[:50])
        self.models: list[ModelChoice] = list_model_choices(user)
        first = {"version-1": DRAFT, **self._second_column_initial(agent)}
        data = args[0] if args else kwargs.get("data")
        chosen = [
            (data or first).get(f"version-{n}", EMPTY_COLUMN)
            for n in range(1, MAX_COLUMNS + 1)
        ]
        names = self._variable_names_of(agent, chosen)
        super().__init__(
            agent, *args, names=names, initial={**first, **(initial or {})}, **kwargs
        )
        for number in range(1, MAX_COLUMNS + 1):
            self._add_column(number)
        style_widgets(self)

    def _second_column_initial(self, agent: Agent) -> dict[str, str]:
        """Return the initial second column: the latest version, or another model."""
        if self.versions:
            return {"version-2": str(self.versions[0].number)}
        own = f"{agent.provider_id}:{agent.model}"
        others = [one.key for one in self.models if one.key != own]
        return {"version-2": DRAFT, "model-2": others[0]} if others else {}

    def _variable_names_of(self, agent: Agent, chosen: list[str]) -> list[str]:
        """Return the variables of all selected versions, the question first."""
        specs = [load_spec(v.spec) for v in self.versions if str(v.number) in chosen]
        names = [
            name
            for spec in (freeze_agent(agent), *specs)
            for name in variables_of_spec(spec)
        ]
        return sorted(dict.fromkeys(names), key=lambda name: name != "input")

    def _add_column(self, number: int) -> None:
        versions = [
            (str(v.number), _("Version %(number)s") % {"number": v.number})
            for v in self.versions
        ]
        empty = [(EMPTY_COLUMN, _("Empty"))] if number > 1 else []
        self.fields[f"version-{number}"] = forms.ChoiceField(
            choices=[*empty, (DRAFT, _("Draft")), *versions],
            required=number == 1,
            label=_("Column %(number)s") % {"number": number},
        )
        self.fields[f"model-{number}"] = forms.ChoiceField(
            choices=[
                ("", _("Its own model")),
                *((one.key, one.title) for one in self.models),
            ],
            required=False,
            label=_("Model of column %(number)s") % {"number": number},
        )

    def columns(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        return [
            (self[f"version-{n}"], self[f"model-{n}"])
            for n in range(1, MAX_COLUMNS + 1)
        ]

    def contenders(self) -> list[TrialVariant]:
        """Return the variants to run, without empty columns."""
        numbers = {str(version.number): version for version in self.versions}
        return [
            self._contender(numbers.get(chosen), self.cleaned_data[f"model-{n}"])
            for n in range(1, MAX_COLUMNS + 1)
            if (chosen := self.cleaned_data[f"version-{n}"])
        ]

    def _contender(self, version: AgentVersion | None, key: str) -> TrialVariant:
        found = find_model_choice(self.models, key)
        if found is None:
            return TrialVariant(version)
        provider: Provider = found.provider
        return TrialVariant(version, provider, found.model)
