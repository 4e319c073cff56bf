"""The form of one model of a provider: what it can do, and what it costs."""

from typing import TYPE_CHECKING, Any

from django import forms

from runs.forms.looks import dress
from runs.models import Provider, ProviderModel

FLAGS = {
    "functions": "Calls functions",
    "stop_words": "Takes stop words",
    "streaming": "Streams its text",
}
PRICES = {
    "input_price": "Input",
    "cached_price": "Cached input",
    "output_price": "Output",
}


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ProviderModel]
else:
    _ModelForm = forms.ModelForm


class ProviderModelForm(_ModelForm):
    """Capabilities are unknown until the server or a person says them."""

    class Meta:
        model = ProviderModel
        fields = ["name", *FLAGS, "context_tokens", *PRICES]
        labels = {**FLAGS, **PRICES, "context_tokens": "Context"}
        help_texts = {
            "cached_price": "Empty: cached tokens cost what others do.",
            "input_price": "Empty: no cost is counted.",
        }

    def __init__(self, provider: Provider, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.instance.provider = provider
        for name in FLAGS:
            self.fields[name] = forms.NullBooleanField(
                label=FLAGS[name], required=False
            )
        for name in PRICES:
            self.fields[name].required = False
            self.fields[name].min_value = 0  # type: ignore[attr-defined]
            self.fields[name].widget.attrs |= {"step": "any", "min": "0"}
        self.fields["context_tokens"].required = False
        self.fields["name"].disabled = self.instance.pk is not None
        dress(self)

    def clean_name(self) -> str:
        """Refuse the name of a model that the list has."""
        name: str = self.cleaned_data["name"]
        others = self.instance.provider.models.exclude(pk=self.instance.pk)
        if others.filter(name=name).exists():
            raise forms.ValidationError("The list has a model of this name.")
        return name

    def clean_context_tokens(self) -> int | None:
        """Refuse a context without room."""
        tokens: int | None = self.cleaned_data["context_tokens"]
        if tokens is not None and not 0 < tokens < 2**31:
            raise forms.ValidationError("Write a number of tokens above 0, or nothing.")
        return tokens

    def clean(self) -> dict[str, Any]:
        """Refuse prices that count for nothing."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name in PRICES:
            price = given.get(name)
            if price is not None and price < 0:
                self.add_error(name, "A price is 0 or more.")
        others = [given.get(name) for name in ("cached_price", "output_price")]
        lacks = given.get("input_price") is None and "input_price" not in self.errors
        if lacks and any(others):
            told = "Write this price too; without it no cost is counted."
            self.add_error("input_price", told)
        return given

    def save(self, commit: bool = True) -> ProviderModel:
        """Remember what a person has set; what was emptied may be told again."""
        row = self.instance
        for name in (*FLAGS, "context_tokens"):
            if name not in self.changed_data:
                continue
            rest = [one for one in row.edited if one != name]
            row.edited = rest if getattr(row, name) is None else [*rest, name]
        return super().save(commit)
