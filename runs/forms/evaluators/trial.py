"""The form that tries an evaluator on a past run."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Run
from runs.services.datasets.content import parse_calls_cell
from runs.services.errors import ExampleRefused


class EvaluatorTrialForm(forms.Form):
    """A run, and what was expected of it."""

    run = forms.IntegerField(
        min_value=1,
        max_value=2**63 - 1,
        label=gettext_lazy("Run"),
        help_text=gettext_lazy("The number of a run that has ended."),
    )
    expected = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Expected answer"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    calls = forms.CharField(
        required=False,
        label=gettext_lazy("Expected calls"),
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono"}),
    )

    def __init__(self, user: User, given: "QueryDict | None" = None) -> None:
        super().__init__(given, prefix="trial")
        self.label_suffix = ""
        self.user = user
        style_widgets(self)

    def clean_run(self) -> Run:
        run = (
            Run.objects.visible_to(self.user)
            .filter(pk=self.cleaned_data["run"])
            .first()
        )
        if run is None:
            raise forms.ValidationError(
                _("Run %(run)s not found.") % {"run": self.cleaned_data["run"]}
            )
        if not run.is_over:
            raise forms.ValidationError(_("The run has not ended yet."))
        return run

    def clean_calls(self) -> Any:
        try:
            return parse_calls_cell(self.cleaned_data["calls"].replace("\r\n", "\n"))
        except ExampleRefused as refused:
            raise forms.ValidationError(str(refused)) from None
