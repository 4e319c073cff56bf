"""The form of a new experiment with the versions of one agent."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.experiments.budget import BudgetField
from runs.forms.experiments.tool_mode import ToolModeField
from runs.forms.widgets import style_widgets
from runs.models import Agent, AgentVersion, Dataset, Evaluator
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    MAX_CANDIDATES,
    MAX_CONCURRENCY,
    MAX_REPETITIONS,
    CandidateChoice,
    ExperimentPlan,
)

DRAFT = "draft"
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
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Candidates"),
        error_messages={"required": gettext_lazy("Select at least one candidate.")},
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Another model"),
        help_text=gettext_lazy(
            "Of the same provider; adds a candidate like the last one with this model."
        ),
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

    def __init__(self, user: User, agent: Agent, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.agent = agent
        versions = agent.versions.select_related("spec")[:MAX_OFFERED_VERSIONS]
        self.versions = {str(one.number): one for one in versions}
        has_draft = Agent.objects.editable_by(user).filter(pk=agent.pk).exists()
        choices: Any = self.fields["candidates"]
        offered = list_candidates(self.versions.values(), has_draft=has_draft)
        choices.choices = offered
        newest = next(iter(self.versions), None)
        choices.initial = [one for one in (newest, DRAFT) if one in dict(offered)]
        evaluators: Any = self.fields["evaluators"]
        evaluators.queryset = Evaluator.objects.usable_by(user).order_by("name")
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        count = len(given.get("candidates", ())) + bool(given.get("model"))
        if count > MAX_CANDIDATES:
            self.add_error(
                "candidates",
                _("Select at most %(limit)d candidates.") % {"limit": MAX_CANDIDATES},
            )
        return given

    def list_choices(self) -> list[CandidateChoice]:
        """Return the candidates, versions before the draft, the newest first."""
        chosen = self.cleaned_data["candidates"]
        found = [
            CandidateChoice(self.agent, self.versions.get(key))
            for key in (*self.versions, DRAFT)
            if key in chosen
        ]
        if model := self.cleaned_data["model"].strip():
            found.append(
                CandidateChoice(
                    self.agent, found[-1].version, CandidateChanges(model=model)
                )
            )
        return found

    def build_plan(self) -> ExperimentPlan:
        given = self.cleaned_data
        return ExperimentPlan(
            tool_mode=given["tool_mode"],
            repetitions=given["repetitions"],
            concurrency=given["concurrency"],
            budget=given["budget"],
        )


def list_candidates(versions: "Any", *, has_draft: bool) -> list[tuple[str, str]]:
    """Return the versions and the draft, with labels."""
    found: list[AgentVersion] = list(versions)
    draft = [(DRAFT, _("Draft"))] if has_draft else []
    return [
        *(
            (str(one.number), _("Version %(number)d") % {"number": one.number})
            for one in found
        ),
        *draft,
    ]
