"""The form of one model of a provider: capabilities and prices."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Provider, ProviderModel

CAPABILITIES = {
    "functions": gettext_lazy("Function calling"),
    "images": gettext_lazy("Images"),
    "audio": gettext_lazy("Audio"),
    "stop_words": gettext_lazy("Stop words"),
    "streaming": gettext_lazy("Streaming"),
}
PRICES = {
    "input_price": gettext_lazy("Input"),
    "cached_price": gettext_lazy("Cached input"),
    "output_price": gettext_lazy("Output"),
}


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ProviderModel]
else:
    _ModelForm = forms.ModelForm


class ProviderModelForm(_ModelForm):
    """Capabilities are unknown until the server or a user sets them."""

    class Meta:
        model = ProviderModel
        fields = ["name", *CAPABILITIES, "context_tokens", *PRICES]
        labels = {
            **CAPABILITIES,
            **PRICES,
            "name": gettext_lazy("Name"),
            "context_tokens": gettext_lazy("Context window"),
        }
        help_texts = {
            "cached_price": gettext_lazy(
                "Leave empty to count cached tokens at the input price."
            ),
            "input_price": gettext_lazy("Leave empty to count no cost."),
        }

    def __init__(self, provider: Provider, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.instance.provider = provider
        for name in CAPABILITIES:
            self.fields[name] = forms.NullBooleanField(
                label=CAPABILITIES[name], required=False
            )
        if not provider.takes_audio:
            del self.fields["audio"]
        for name in PRICES:
            self.fields[name].required = False
            self.fields[name].min_value = 0  # type: ignore[attr-defined]
            self.fields[name].widget.attrs |= {"step": "any", "min": "0"}
        self.fields["context_tokens"].required = False
        self.fields["name"].disabled = self.instance.pk is not None
        style_widgets(self)

    def clean_name(self) -> str:
        """Refuse the name of another model of this provider."""
        name: str = self.cleaned_data["name"]
        others = self.instance.provider.models.exclude(pk=self.instance.pk)
        if others.filter(name=name).exists():
            raise forms.ValidationError(
                _("This provider already has a model with this name.")
            )
        return name

    def clean_context_tokens(self) -> int | None:
        """Refuse a context window of zero."""
        tokens: int | None = self.cleaned_data["context_tokens"]
        if tokens is not None and not 0 < tokens < 2**31:
            raise forms.ValidationError(
                _("Enter a number of tokens greater than 0, or leave empty.")
            )
        return tokens

    def clean(self) -> dict[str, Any]:
        """Refuse negative prices, and other prices without an input price."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name in PRICES:
            price = given.get(name)
            if price is not None and price < 0:
                self.add_error(name, _("Enter a price of 0 or more."))
        others = [given.get(name) for name in ("cached_price", "output_price")]
        lacks = given.get("input_price") is None and "input_price" not in self.errors
        if lacks and any(others):
            message = _("Enter the input price too; without it no cost is counted.")
            self.add_error("input_price", message)
        return given

    def save(self, commit: bool = True) -> ProviderModel:
        """Record which values the user set; the server may set cleared ones again."""
        row = self.instance
        for name in (*CAPABILITIES, "context_tokens"):
            if name not in self.changed_data:
                continue
            rest = [one for one in row.edited if one != name]
            row.edited = rest if getattr(row, name) is None else [*rest, name]
        return super().save(commit)
