"""The budget of an experiment, as forms ask for it."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


def require_above_zero(value: Any) -> None:
    """Refuse 0, with which nothing could be spent; None means no limit."""
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

    def prepare_value(self, value: Any) -> Any:
        """Return a stored amount without the zeros at its end."""
        if not isinstance(value, Decimal):
            return value
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
