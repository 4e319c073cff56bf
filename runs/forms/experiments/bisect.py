"""The form that starts the search for a failing version."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.forms.experiments.budget import BudgetField
from runs.forms.experiments.tool_mode import ToolModeField
from runs.forms.widgets import style_widgets
from runs.services.experiments.bisect import BisectionPlan
from runs.services.experiments.create import MAX_REPETITIONS


class BisectForm(forms.Form):
    """How often each version is run, and for how much."""

    repetitions = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPETITIONS,
        label=gettext_lazy("Repetitions"),
        help_text=gettext_lazy("A version passes if most of its runs do."),
    )
    budget = BudgetField(
        help_text=gettext_lazy("The experiment stops when it has cost as much.")
    )
    tool_mode = ToolModeField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)

    def build_plan(self) -> BisectionPlan:
        given = self.cleaned_data
        return BisectionPlan(given["repetitions"], given["budget"], given["tool_mode"])
