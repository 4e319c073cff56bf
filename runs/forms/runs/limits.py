"""The limits a run continues with: rounds, time, tokens, cost."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.engine.types import Budget, ExecutorOptions
from runs.forms.widgets import style_widgets

LIMIT_FIELDS = ("max_iterations", "max_execution_time", "tokens", "cost")


class LimitsForm(forms.Form):
    """What a resumed or forked run may use; an empty field means no limit.

    A field that was not sent at all leaves its limit as it is.
    """

    max_iterations = forms.IntegerField(
        required=False, min_value=1, max_value=1_000_000, label=gettext_lazy("Rounds")
    )
    max_execution_time = forms.FloatField(
        required=False, min_value=0, label=gettext_lazy("Working time")
    )
    tokens = forms.IntegerField(
        required=False, min_value=1, label=gettext_lazy("Tokens")
    )
    cost = forms.FloatField(required=False, min_value=0, label=gettext_lazy("Cost"))

    def __init__(self, options: ExecutorOptions, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.options = options
        budget = options.budget or Budget()
        self.initial = {
            "max_iterations": options.max_iterations,
            "max_execution_time": options.max_execution_time,
            "tokens": budget.tokens,
            "cost": budget.cost,
            **self.initial,
        }
        for name in ("max_execution_time", "cost"):
            self.fields[name].widget.attrs["step"] = "any"
        for field in self.fields.values():
            field.is_needed = True  # type: ignore[attr-defined]  # none says "optional"
        style_widgets(self)

    def changed_options(self) -> dict[str, Any]:
        """Return the fields of `ExecutorOptions` that differ from before."""
        budget = (self.options.budget or Budget()).model_dump()
        own = {"tokens": budget["tokens"], "cost": budget["cost"]}
        found: dict[str, Any] = {}
        for name in LIMIT_FIELDS:
            if name not in self.data:
                continue
            value = self.cleaned_data.get(name)
            if name in own:
                own[name] = value
            elif value != getattr(self.options, name):
                found[name] = value
        if own != {"tokens": budget["tokens"], "cost": budget["cost"]}:
            has_any = any(value is not None for value in own.values())
            found["budget"] = own if has_any else None
        return found
