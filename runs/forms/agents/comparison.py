"""The form of a comparison: one question, and up to four models or versions."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from runs.forms.looks import dress
from runs.forms.run import RunForm
from runs.models import Agent, AgentVersion, Provider
from runs.services.freeze_agent import freeze_agent, spec_of, variables_of_spec
from runs.services.model_choices import ModelChoice, model_choices, model_of
from runs.services.start_test import Contender

COLUMNS = 4
DRAFT = "draft"
NONE = ""


class SideForm(RunForm):
    """The question with its variables, and what answers in each column."""

    def __init__(
        self, agent: Agent, *args: Any, user: User, initial: Any = None, **kwargs: Any
    ) -> None:
        self.versions = list(agent.versions.select_related("spec")[:50])
        self.models: list[ModelChoice] = model_choices(user)
        first = {"version-1": DRAFT, **self._second(agent)}
        data = args[0] if args else kwargs.get("data")
        chosen = [
            (data or first).get(f"version-{n}", NONE) for n in range(1, COLUMNS + 1)
        ]
        names = self._names_of(agent, chosen)
        super().__init__(
            agent, *args, names=names, initial={**first, **(initial or {})}, **kwargs
        )
        for number in range(1, COLUMNS + 1):
            self._add_column(number)
        dress(self)

    def _second(self, agent: Agent) -> dict[str, str]:
        """Return what the draft is compared with at first: a version, or a model."""
        if self.versions:
            return {"version-2": str(self.versions[0].number)}
        own = f"{agent.provider_id}:{agent.model}"
        others = [one.key for one in self.models if one.key != own]
        return {"version-2": DRAFT, "model-2": others[0]} if others else {}

    def _names_of(self, agent: Agent, chosen: list[str]) -> list[str]:
        """Return the variables of all that may answer, the question first."""
        specs = [spec_of(v.spec) for v in self.versions if str(v.number) in chosen]
        names = [
            name
            for spec in (freeze_agent(agent), *specs)
            for name in variables_of_spec(spec)
        ]
        return sorted(dict.fromkeys(names), key=lambda name: name != "input")

    def _add_column(self, number: int) -> None:
        versions = [(str(v.number), f"version {v.number}") for v in self.versions]
        empty = [(NONE, "nothing")] if number > 1 else []
        self.fields[f"version-{number}"] = forms.ChoiceField(
            choices=[*empty, (DRAFT, "the draft"), *versions],
            required=number == 1,
            label=f"Column {number}",
        )
        self.fields[f"model-{number}"] = forms.ChoiceField(
            choices=[
                ("", "with its own model"),
                *((one.key, one.title) for one in self.models),
            ],
            required=False,
            label=f"Model of column {number}",
        )

    def columns(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Return the two fields of each column."""
        return [
            (self[f"version-{n}"], self[f"model-{n}"]) for n in range(1, COLUMNS + 1)
        ]

    def contenders(self) -> list[Contender]:
        """Return what answers, empty columns left out."""
        numbers = {str(version.number): version for version in self.versions}
        return [
            self._contender(numbers.get(chosen), self.cleaned_data[f"model-{n}"])
            for n in range(1, COLUMNS + 1)
            if (chosen := self.cleaned_data[f"version-{n}"])
        ]

    def _contender(self, version: AgentVersion | None, key: str) -> Contender:
        found = model_of(self.models, key)
        if found is None:
            return Contender(version)
        provider: Provider = found.provider
        return Contender(version, provider, found.model)
