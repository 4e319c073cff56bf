"""The form that decides what continues on a restored site."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.services.backup.confirm import RestoreChoices


class RestoreForm(forms.Form):
    """One choice for each kind of work; the first ones repeat nothing."""

    runs = forms.ChoiceField(
        label=gettext_lazy("Runs that were in progress"),
        choices=[
            ("stop", gettext_lazy("Stop them; they can be resumed")),
            ("continue", gettext_lazy("Continue them now")),
        ],
        widget=forms.RadioSelect,
        initial="stop",
    )
    schedules = forms.ChoiceField(
        label=gettext_lazy("Schedules"),
        choices=[
            ("disable", gettext_lazy("Disable all")),
            ("continue", gettext_lazy("Continue with the next time")),
        ],
        widget=forms.RadioSelect,
        initial="disable",
    )
    webhooks = forms.ChoiceField(
        label=gettext_lazy("Webhooks"),
        choices=[
            ("disable", gettext_lazy("Discard unsent deliveries and disable all")),
            ("discard", gettext_lazy("Discard unsent deliveries only")),
            ("send", gettext_lazy("Send unsent deliveries")),
        ],
        widget=forms.RadioSelect,
        initial="disable",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        style_widgets(self)

    def to_choices(self) -> RestoreChoices:
        return RestoreChoices(**self.cleaned_data)
