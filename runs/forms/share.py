"""The form that makes a link to a run."""

from django import forms

from runs.forms.looks import dress

HOURS = [
    ("1", "One hour"),
    ("24", "One day"),
    ("168", "One week"),
    ("720", "30 days"),
    ("2160", "90 days"),
]


class ShareForm(forms.Form):
    """How long the link opens the run."""

    hours = forms.ChoiceField(choices=HOURS, initial="168", label="Opens it for")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # a form's own
        self.label_suffix = ""
        dress(self)
