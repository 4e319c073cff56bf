"""The form of a scoring rule."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.experiments.budget import require_above_zero
from runs.forms.widgets import style_widgets
from runs.models import Agent, AnnotationQueue, Dataset, Evaluator, ScoringRule, Webhook
from runs.services.evaluation.judge_requests import is_judge

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ScoringRule]
else:
    _ModelForm = forms.ModelForm


def name_choice(row: Any) -> str:
    """Return the name of a choice, and whether it is archived."""
    if getattr(row, "archived_at", None) is None:
        return str(row)
    return _("%(name)s (archived)") % {"name": row}


class ScoringRuleForm(_ModelForm):
    """Which runs are scored, by what, for how much, and where failing ones go."""

    class Meta:
        model = ScoringRule
        fields = [
            *("name", "agent", "evaluators", "percent", "daily_budget", "daily_runs"),
            *("queue", "dataset", "webhook"),
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "agent": gettext_lazy("Agent"),
            "evaluators": gettext_lazy("Evaluators"),
            "percent": gettext_lazy("Percent of the runs"),
            "daily_budget": gettext_lazy("Budget per day in dollars"),
            "daily_runs": gettext_lazy("Scored runs per day"),
            "queue": gettext_lazy("Annotation queue"),
            "dataset": gettext_lazy("Dataset"),
            "webhook": gettext_lazy("Webhook"),
        }
        help_texts = {
            "daily_budget": gettext_lazy("Leave empty for no limit."),
            "daily_runs": gettext_lazy("Leave empty for no limit."),
            "dataset": gettext_lazy("Gets the input, without the failing answer."),
        }
        widgets = {"evaluators": forms.CheckboxSelectMultiple}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        rule, owner = self.instance, self.instance.owner
        offered: dict[str, Any] = {
            "agent": Agent.objects.usable_by(owner).filter(is_playground=False),
            "evaluators": Evaluator.objects.usable_by(owner),
            "queue": AnnotationQueue.objects.usable_by(owner),
            "dataset": Dataset.objects.editable_by(owner).filter(archived_at=None),
            "webhook": Webhook.objects.filter(owner=owner),
        }
        selected: dict[str, Any] = {
            name: [getattr(rule, f"{name}_id", None)] for name in offered
        }
        selected["evaluators"] = rule.evaluators.values("pk") if rule.pk else []
        for name, rows in offered.items():
            field: Any = self.fields[name]
            # what was archived meanwhile stays selected
            kept = Q(pk__in=rows.values("pk")) | Q(pk__in=selected[name])
            field.queryset = rows.model.objects.filter(kept).order_by("name")
            field.label_from_instance = name_choice
        style_widgets(self)
        self.fields["evaluators"].error_messages["required"] = _(
            "Select at least one evaluator."
        )

    def save(self, commit: bool = True) -> ScoringRule:
        """Write the fields of the form alone: a worker and a pause write others."""
        if not commit:
            return super().save(commit)
        if self.instance.pk is None:
            with transaction.atomic():  # never a rule without its evaluators
                return super().save()
        own = [name for name in self.Meta.fields if name != "evaluators"]
        rule = super().save(commit=False)
        with transaction.atomic():
            rule.save(update_fields=own)
            self.save_m2m()
        return rule

    def clean_percent(self) -> Any:
        percent = self.cleaned_data["percent"]
        if not 0 < percent <= 100:
            raise forms.ValidationError(_("Enter a number above 0, up to 100."))
        return percent

    def clean_daily_budget(self) -> Any:
        require_above_zero(self.cleaned_data["daily_budget"])
        return self.cleaned_data["daily_budget"]

    def clean_daily_runs(self) -> Any:
        require_above_zero(self.cleaned_data["daily_runs"])
        return self.cleaned_data["daily_runs"]

    def clean_evaluators(self) -> Any:
        """Refuse a judge that compares: a real run has nothing to compare with."""
        evaluators = self.cleaned_data["evaluators"]
        for one in evaluators:
            if is_judge(one) and one.config.get("form") == "pairwise":
                raise forms.ValidationError(
                    _(
                        "%(name)s compares two answers, and a real run has only one. "
                        "Select another evaluator."
                    )
                    % {"name": one}
                )
        return evaluators
