"""The budget of an experiment, as forms ask for it."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy


class BudgetField(forms.DecimalField):
    """Dollars; empty for no limit."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            required=False,
            min_value=0,
            max_digits=14,
            decimal_places=6,
            label=gettext_lazy("Budget in dollars"),
            **more,
        )
