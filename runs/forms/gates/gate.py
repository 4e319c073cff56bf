"""The form of an agent's gate."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy

from runs.evaluation.gate import GateRules
from runs.forms.experiments.tool_mode import ToolModeField
from runs.forms.widgets import style_widgets
from runs.models import Dataset, Evaluator, Gate
from runs.services.experiments.create import MAX_REPETITIONS
from runs.services.gates.edit import GatePlan, find_tag_problem


class GateForm(forms.Form):
    """The experiment that is required, and the rules."""

    dataset = forms.ModelChoiceField(
        queryset=Dataset.objects.none(),
        label=gettext_lazy("Dataset"),
        help_text=gettext_lazy("Its newest saved version counts."),
    )
    evaluators = forms.ModelMultipleChoiceField(
        queryset=Evaluator.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Evaluators"),
        error_messages={"required": gettext_lazy("Select at least one evaluator.")},
    )
    min_pass_rate = forms.FloatField(
        min_value=0,
        max_value=100,
        initial=90,
        label=gettext_lazy("Minimum pass rate in percent"),
    )
    refuses_regression = forms.BooleanField(
        required=False,
        initial=True,
        label=gettext_lazy("Not worse than the published version"),
    )
    must_pass_tag = forms.CharField(
        required=False,
        max_length=40,
        label=gettext_lazy("Tag of examples that must pass"),
    )
    max_p95_seconds = forms.FloatField(
        required=False,
        min_value=0.001,
        max_value=1_000_000,
        label=gettext_lazy("Maximum p95 time in seconds"),
    )
    max_cost_increase = forms.FloatField(
        required=False,
        min_value=0,
        max_value=1_000_000,
        label=gettext_lazy("Maximum additional cost per run in percent"),
    )
    repetitions = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPETITIONS,
        initial=1,
        label=gettext_lazy("Repetitions"),
    )
    tool_mode = ToolModeField()

    def __init__(self, user: User, gate: Gate | None, data: Any = None) -> None:
        super().__init__(data, initial=get_gate_initial(gate))
        self.label_suffix = ""
        datasets: Any = self.fields["dataset"]
        usable = Dataset.objects.usable_by(user).filter(version__gt=0)
        evaluators: Any = self.fields["evaluators"]
        offered = Evaluator.objects.usable_by(user)
        if gate is not None:  # what somebody else has selected stays selected
            usable = usable | Dataset.objects.filter(pk=gate.dataset_id)
            offered = offered | Evaluator.objects.filter(
                pk__in=gate.evaluators.values("pk")
            )
        datasets.queryset = usable.distinct().order_by("name")
        evaluators.queryset = offered.distinct().order_by("name")
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        """Refuse a tag that no example has: such a gate is never met."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and (problem := find_tag_problem(self.build_plan())):
            self.add_error("must_pass_tag", problem)
        return given

    def build_plan(self) -> GatePlan:
        given = self.cleaned_data
        return GatePlan(
            dataset=given["dataset"],
            evaluators=list(given["evaluators"]),
            rules=GateRules(
                min_pass_rate=given["min_pass_rate"] / 100,
                must_pass_tag=given["must_pass_tag"].strip(),
                refuses_regression=given["refuses_regression"],
                max_p95_seconds=given["max_p95_seconds"],
                max_cost_increase=given["max_cost_increase"],
            ),
            tool_mode=given["tool_mode"],
            repetitions=given["repetitions"],
        )


def get_gate_initial(gate: Gate | None) -> dict[str, Any]:
    if gate is None:
        return {}
    rules = GateRules.model_validate(gate.rules)
    return {
        **rules.model_dump(),
        "min_pass_rate": round(100 * rules.min_pass_rate, 4),
        "dataset": gate.dataset_id,
        "evaluators": list(gate.evaluators.values_list("pk", flat=True)),
        "repetitions": gate.repetitions,
        "tool_mode": gate.tool_mode,
    }
