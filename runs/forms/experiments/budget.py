"""The budget of an experiment, as forms ask for it."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


def require_above_zero(value: Any) -> None:
    """Refuse 0: nothing could be spent. None is no limit."""
    if value is not None and value <= 0:
        raise forms.ValidationError(_("Enter a number above 0, or leave it empty."))


class BudgetField(forms.DecimalField):
    """Dollars; empty for no limit."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            required=False,
            max_digits=14,
            decimal_places=6,
            label=gettext_lazy("Budget in dollars"),
            validators=[require_above_zero],
            **more,
        )
