"""The form of an evaluator: name, settings of its kind, and sharing."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from runs.evaluation.kind import EvaluatorConfig
from runs.evaluation.registry import EVALUATOR_KINDS
from runs.forms.evaluators.config_fields import (
    CONFIG_FIELD,
    build_config_fields,
    read_config,
)
from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.widgets import style_widgets
from runs.models import Evaluator
from runs.services.evaluators.save import find_evaluator_problems
from tools.text.translatable import translate_text

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Evaluator]
else:
    _ModelForm = forms.ModelForm


class EvaluatorForm(_ModelForm):
    """An evaluator of a kind that is set already.

    If the extension that adds the kind is not loaded, the form is never valid.
    """

    class Meta:
        model = Evaluator
        fields = ["name", "visibility"]
        labels = {
            "name": gettext_lazy("Name"),
            "visibility": gettext_lazy("Shared with"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        kind = EVALUATOR_KINDS.get(self.instance.kind)
        self.config_model = kind.config_model if kind else EvaluatorConfig
        fields = build_config_fields(self.config_model)
        self.fields |= fields
        for name, value in self.instance.config.items():
            if CONFIG_FIELD + name in fields:
                self.initial[CONFIG_FIELD + name] = value
        add_groups_field(self, self.instance)
        style_widgets(self)

    def config_fields(self) -> list[forms.BoundField]:
        return [bound for bound in self if bound.name.startswith(CONFIG_FIELD)]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        if any(name.startswith(CONFIG_FIELD) for name in self.errors):
            return given
        self.config = read_config(self.config_model, given)
        one = self.instance
        checked = Evaluator(owner=one.owner, kind=one.kind, config=self.config)
        for field, message in find_evaluator_problems(checked):
            name = CONFIG_FIELD + field.partition(".")[0]
            text = translate_text(message, gettext)
            self.add_error(name if name in self.fields else None, text)
        return given

    def apply(self) -> Evaluator:
        """Return the evaluator with the values of a valid form, not stored yet."""
        self.instance.config = self.config
        return self.instance

    def save_sharing(self) -> None:
        save_shared_groups(self.instance, self.cleaned_data["groups"])
