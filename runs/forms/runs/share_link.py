"""The form that makes a link to a run."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets

HOUR_CHOICES = [
    ("1", gettext_lazy("1 hour")),
    ("24", gettext_lazy("1 day")),
    ("168", gettext_lazy("1 week")),
    ("720", gettext_lazy("30 days")),
    ("2160", gettext_lazy("90 days")),
]


class ShareLinkForm(forms.Form):
    """How long the link opens the run."""

    hours = forms.ChoiceField(
        choices=HOUR_CHOICES, initial="168", label=gettext_lazy("Valid for")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)
