"""The form that resumes a stopped experiment."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets


class ResumeExperimentForm(forms.Form):
    """The new budget; empty for none."""

    budget = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=14,
        decimal_places=6,
        label=gettext_lazy("Budget in dollars"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)
