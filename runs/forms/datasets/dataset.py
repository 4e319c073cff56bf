"""The form of a dataset: name, variables and who may see it."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.widgets import style_widgets
from runs.models import Dataset
from runs.services.datasets.content import DEFAULT_INPUT, MAX_INPUTS, MAX_NAME_CHARS
from runs.services.datasets.edit import set_input_names

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Dataset]
else:
    _ModelForm = forms.ModelForm


class DatasetForm(_ModelForm):
    """A name, a description, the input variables and the sharing."""

    variables = forms.CharField(
        label=gettext_lazy("Input variables"),
        help_text=gettext_lazy(
            "As in the prompt of the agent, separated by commas. Most agents have one, "
            "called input."
        ),
    )

    class Meta:
        model = Dataset
        fields = ["name", "description", "visibility"]
        labels = {
            "name": gettext_lazy("Name"),
            "description": gettext_lazy("Description"),
            "visibility": gettext_lazy("Shared with"),
        }
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        names = self.instance.input_names or [DEFAULT_INPUT]
        self.fields["variables"].initial = ", ".join(names)
        add_groups_field(self, self.instance)
        style_widgets(self)

    def clean_variables(self) -> list[str]:
        """Return the names, each once."""
        text = self.cleaned_data["variables"].replace("，", ",")
        names = list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
        if len(names) > MAX_INPUTS or any(len(name) > MAX_NAME_CHARS for name in names):
            raise forms.ValidationError(
                _("Enter at most %(count)d names of at most %(limit)d characters.")
                % {"count": MAX_INPUTS, "limit": MAX_NAME_CHARS}
            )
        return names or [DEFAULT_INPUT]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        return given

    def save(self, commit: bool = True) -> Dataset:
        names = self.cleaned_data["variables"]
        if self.instance.pk:
            set_input_names(self.instance, names)
        else:
            self.instance.input_names = names
        saved = super().save(commit)
        if commit:
            save_shared_groups(saved, self.cleaned_data["groups"])
        return saved
