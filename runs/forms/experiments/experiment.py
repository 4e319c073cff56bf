"""The form of a new experiment with the versions of one agent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.experiments.budget import BudgetField
from runs.forms.experiments.candidate_changes import (
    DRAFT,
    CandidateChangesForm,
    load_candidate_offer,
    name_choice,
    read_choice_values,
)
from runs.forms.experiments.tool_mode import ToolModeField
from runs.forms.widgets import style_widgets
from runs.models import Agent, AgentVersion, Dataset, Evaluator
from runs.services.errors import FieldError
from runs.services.experiments.create import (
    MAX_CANDIDATES,
    MAX_CONCURRENCY,
    MAX_REPETITIONS,
    CandidateChoice,
    ExperimentPlan,
    label_candidate,
)
from runs.whole_number import parse_whole_number

FORMER = "former-"
"""Begins the value of a candidate of the former experiment that another agent has."""
ROW = "row-"
MAX_OFFERED_VERSIONS = 20


class ExperimentSubjectForm(forms.Form):
    """What is evaluated: a dataset with a version, and an agent."""

    dataset = forms.ModelChoiceField(
        queryset=Dataset.objects.none(), label=gettext_lazy("Dataset")
    )
    agent = forms.ModelChoiceField(
        queryset=Agent.objects.none(), label=gettext_lazy("Agent")
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        datasets: Any = self.fields["dataset"]
        usable = Dataset.objects.usable_by(user).filter(version__gt=0)
        datasets.queryset = usable.order_by("name")
        agents: Any = self.fields["agent"]
        agents.queryset = Agent.objects.usable_by(user).order_by("name")
        style_widgets(self)


class ExperimentForm(forms.Form):
    """Candidates, evaluators and how the runs are made."""

    name = forms.CharField(required=False, max_length=120, label=gettext_lazy("Name"))
    candidates = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Candidates"),
    )
    evaluators = forms.ModelMultipleChoiceField(
        queryset=Evaluator.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Evaluators"),
        error_messages={"required": gettext_lazy("Select at least one evaluator.")},
    )
    tool_mode = ToolModeField()
    repetitions = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPETITIONS,
        initial=1,
        label=gettext_lazy("Repetitions"),
    )
    concurrency = forms.IntegerField(
        min_value=1,
        max_value=MAX_CONCURRENCY,
        initial=10,
        label=gettext_lazy("Runs at once"),
    )
    budget = BudgetField(
        help_text=gettext_lazy("The experiment stops when it has cost as much.")
    )

    def __init__(
        self,
        user: User,
        agent: Agent,
        data: Mapping[str, Any] | None = None,
        *,
        initial: dict[str, Any] | None = None,
        former: Sequence[CandidateChoice] = (),
        rows: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """`former` are the candidates of the experiment that runs again.

        `rows` are the values of the candidates with changes, if not those of `former`.
        """
        super().__init__(data, initial=initial)
        self.label_suffix = ""
        self.agent, self.former = agent, list(former)
        versions = list(agent.versions.select_related("spec")[:MAX_OFFERED_VERSIONS])
        self.offer = load_candidate_offer(
            user, agent, add_former_versions(versions, agent, former), former
        )
        self.former_keys = name_former(former, agent)
        offered = self.offer.list_bases()
        for key, one in zip(self.former_keys, former, strict=True):
            if key.startswith(FORMER):
                offered.append((key, label_candidate(one, several=True)))
        choices: Any = self.fields["candidates"]
        choices.choices = sorted(offered, key=lambda one: self._place(one[0]))
        newest = next(iter(self.offer.versions), None)
        usual = [one for one in (newest, DRAFT) if one in dict(offered)]
        boxes = [key for key in self.former_keys if not key.startswith(ROW)]
        choices.initial = boxes if former else usual
        self.rows = self._build_rows(data, rows)
        evaluators: Any = self.fields["evaluators"]
        evaluators.queryset = Evaluator.objects.usable_by(user).order_by("name")
        style_widgets(self)

    def _place(self, key: str) -> int:
        """Return the place in the former experiment; new candidates come after it."""
        keys = self.former_keys
        return keys.index(key) if key in keys else len(keys)

    def _build_rows(
        self, data: Mapping[str, Any] | None, values: Sequence[dict[str, Any]] | None
    ) -> list[CandidateChangesForm]:
        """Return the candidates with changes: as sent, else of `values`."""
        if values is None:
            values = [
                read_choice_values(one, self.offer)
                for key, one in zip(self.former_keys, self.former, strict=True)
                if key.startswith(ROW)
            ]
        count = len(values) or int(self.offer.has_draft)
        if data is not None:
            count = parse_whole_number(data.get("rows", "")) or 0
        return [
            CandidateChangesForm(
                self.offer,
                data,
                prefix=f"changed-{place}",
                initial=values[place] if place < len(values) else None,
            )
            for place in range(min(count, MAX_CANDIDATES))
        ]

    def is_valid(self) -> bool:
        """Whether this and all candidates with changes are valid."""
        return all([super().is_valid(), *(row.is_valid() for row in self.rows)])

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        count = len(given.get("candidates", ()))
        count += sum(row.is_filled for row in self.rows)
        if not count and "candidates" in given:
            self.add_error("candidates", _("Select at least one candidate."))
        if count > MAX_CANDIDATES:
            self.add_error(
                "candidates",
                _("Select at most %(limit)d candidates.") % {"limit": MAX_CANDIDATES},
            )
        return given

    def list_choices(self) -> list[CandidateChoice]:
        """Return the candidates of a valid form, in the order of the former ones."""
        return [choice for choice, _row in self._list_placed()]

    def _list_placed(
        self,
    ) -> list[tuple[CandidateChoice, CandidateChangesForm | None]]:
        """Return the candidates, each with the form of its changes."""
        chosen = self.cleaned_data["candidates"]
        offered: Any = self.fields["candidates"]
        boxes = [
            (key, self._find_choice(key))
            for key, _label in offered.choices
            if key in chosen
        ]
        own = [choice for _key, choice in boxes if choice.agent == self.agent]
        last = own[-1] if own else None
        found: list[tuple[int, CandidateChoice, CandidateChangesForm | None]]
        found = [(self._place(key), choice, None) for key, choice in boxes]
        found += [
            (self._place(f"{ROW}{place}"), row.build_choice(last), row)
            for place, row in enumerate(self.rows)
            if row.is_filled
        ]
        return [one[1:] for one in sorted(found, key=lambda one: one[0])]

    def _find_choice(self, key: str) -> CandidateChoice:
        if key.startswith(FORMER):
            return self.former[self.former_keys.index(key)]
        return CandidateChoice(self.agent, self.offer.versions.get(key))

    def add_candidate_errors(self, errors: Iterable[FieldError]) -> None:
        """Show errors of candidates with changes at their fields."""
        placed = self._list_placed()
        for error in errors:
            noun, place, name = [*error.field.split(".", 2), "", ""][:3]
            row = placed[int(place)][1] if noun == "candidates" else None
            name = name.rpartition(".")[2]
            name = "more" if name == "parameters" else name
            if row is not None and name in row.fields:
                row.add_error(name, error.message)
            else:
                self.add_error(None, error.message)

    def read_values(self) -> dict[str, Any]:
        """Return what was sent, without checking it."""
        return {name: self[name].value() for name in self.fields}

    def build_plan(self) -> ExperimentPlan:
        given = self.cleaned_data
        return ExperimentPlan(
            tool_mode=given["tool_mode"],
            repetitions=given["repetitions"],
            concurrency=given["concurrency"],
            budget=given["budget"],
        )


def add_former_versions(
    versions: list[AgentVersion], agent: Agent, former: Sequence[CandidateChoice]
) -> list[AgentVersion]:
    """Return the newest versions, and older ones that the former experiment ran."""
    known = {one.pk for one in versions}
    older = {
        one.version.pk: one.version
        for one in former
        if one.agent == agent and one.version and one.version.pk not in known
    }
    return [*versions, *sorted(older.values(), key=lambda one: -one.number)]


def name_former(former: Sequence[CandidateChoice], agent: Agent) -> list[str]:
    """Return the value in the form for each candidate of a former experiment.

    One that is selected by a check box occurs once; an equal one is a row.
    """
    keys: list[str] = []
    for place, one in enumerate(former):
        key = name_choice(one)
        if one.agent != agent:
            key = f"{FORMER}{place}"
        elif one.changes or key in keys:
            key = f"{ROW}{sum(name.startswith(ROW) for name in keys)}"
        keys.append(key)
    return keys
