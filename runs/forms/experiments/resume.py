"""The form that resumes a stopped experiment."""

from typing import Any

from django import forms

from runs.forms.experiments.budget import BudgetField
from runs.forms.widgets import style_widgets


class ResumeExperimentForm(forms.Form):
    """The new budget; empty for none."""

    budget = BudgetField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)
