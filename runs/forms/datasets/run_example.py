"""The form that adds a run to a dataset."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.datasets.example import ExampleForm
from runs.forms.datasets.receiver import (
    NewDatasetNameField,
    ReceiverField,
    offer_datasets,
    require_dataset_name,
)
from runs.forms.widgets import style_widgets
from runs.models import Example, Run
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.same_example import find_same_example


class RunExampleForm(ExampleForm):
    """An example, and the dataset that gets it: one of the user's or a new one."""

    dataset = ReceiverField()
    name = NewDatasetNameField()
    same = forms.ChoiceField(
        required=False,
        choices=[
            ("update", gettext_lazy("Update that example")),
            ("add", gettext_lazy("Add another example")),
        ],
        widget=forms.RadioSelect,
        label=gettext_lazy("Same input"),
    )

    def __init__(
        self, run: Run, content: ExampleContent, user: User, *args: Any
    ) -> None:
        super().__init__([], content, *args)
        self.run = run
        offer_datasets(self, user)
        self.same_example: Example | None = None
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        """Require a name for a new dataset, and a decision about a duplicate."""
        given = super().clean()
        dataset = given.get("dataset")
        require_dataset_name(self, given)
        if dataset is not None and not self.errors:
            self.same_example = find_same_example(dataset, self.content, self.run)
        if self.same_example is not None and not given.get("same"):
            self.add_error(
                "same",
                _("Example %(number)d of the dataset has the same input.")
                % {"number": self.same_example.number},
            )
        return given
