"""The fields that select the dataset that gets an example, or name a new one."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Dataset

if TYPE_CHECKING:
    _ModelChoiceField = forms.ModelChoiceField[Dataset]
else:
    _ModelChoiceField = forms.ModelChoiceField


class ReceiverField(_ModelChoiceField):
    """One of the datasets that the user can edit, or a new one."""

    is_needed = True

    def __init__(self) -> None:
        super().__init__(
            queryset=Dataset.objects.none(),
            required=False,
            empty_label=gettext_lazy("New dataset"),
            label=gettext_lazy("Dataset"),
        )


class NewDatasetNameField(forms.CharField):
    is_needed = True
    """Of a new one."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            max_length=120,
            label=gettext_lazy("Name of the new dataset"),
        )


class RunsReceiverForm(forms.Form):
    """The dataset that gets the selected runs."""

    dataset = ReceiverField()
    name = NewDatasetNameField()

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        offer_datasets(self, user)
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_dataset_name(self, given)
        return given


def offer_datasets(form: forms.Form, user: User) -> None:
    """Offer what the user can edit, beginning with what was edited last."""
    mine = Dataset.objects.editable_by(user).filter(archived_at=None)
    field: Any = form.fields["dataset"]
    field.queryset = mine.order_by("name")
    newest = mine.filter(owner=user).order_by("-updated_at").first()
    field.initial = newest and newest.pk


def require_dataset_name(form: forms.Form, given: dict[str, Any]) -> None:
    is_new = given.get("dataset") is None and not form.errors.get("dataset")
    if is_new and not given.get("name"):
        form.add_error("name", _("Enter a name for the new dataset."))
