"""The form of a provider; key and headers go in and never come out."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms

from runs.forms.looks import dress, mono
from runs.forms.sharing import check_groups, offer_groups, share_with
from runs.llm.registry import KINDS
from runs.models import Provider
from runs.services.open_provider import net_policy
from tools.netpolicy import AddressRefused
from tools.web_address import flaw_of_address, names_a_person

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Provider]
else:
    _ModelForm = forms.ModelForm


class ProviderForm(_ModelForm):
    """Where a server is and how to reach it."""

    kind = forms.ChoiceField(
        choices=lambda: [(name, kind.title) for name, kind in KINDS.items()],
        label="Kind",
    )
    base_url = forms.CharField(
        required=False,
        max_length=500,
        label="Base URL",
        help_text="Such as http://127.0.0.1:11434/v1. Empty: the usual address of the "
        "kind.",
        widget=forms.TextInput(
            attrs={"inputmode": "url", "list": "provider-addresses"}
        ),
    )
    key = forms.CharField(
        required=False,
        label="Key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Kept encrypted and never shown again.",
    )
    forget_key = forms.BooleanField(required=False, label="Remove the stored key")
    headers = forms.CharField(
        required=False,
        label="Extra headers",
        widget=mono(2),
        help_text="One a line, as Name: value. Kept encrypted and never shown again.",
    )
    forget_headers = forms.BooleanField(
        required=False, label="Remove the stored headers"
    )

    class Meta:
        model = Provider
        fields = [
            "name",
            "kind",
            "base_url",
            "key_env",
            "default_model",
            "timeout",
            "stream",
            "visibility",
        ]
        labels = {
            "key_env": "Environment variable with the key",
            "default_model": "Usual model",
            "timeout": "Silence that ends a call",
            "stream": "Show text while the model writes",
            "visibility": "Who may use it",
        }
        help_texts = {
            "key_env": "Read by the worker where no key is typed in, "
            "as OPENAI_API_KEY.",
            "default_model": "Offered first where an agent is made.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reached = self.instance.reach
        self.label_suffix = ""
        self.fields["timeout"].widget.attrs["step"] = "any"
        if self.instance.owner.is_superuser:
            self.fields["key_env"].widget.attrs["list"] = "provider-variables"
        else:
            del self.fields["key_env"]
        self.fields["default_model"].widget.attrs["list"] = "provider-models"
        self.initial["timeout"] = f"{self.instance.timeout:g}"
        if self.instance.sealed_key:
            self.fields["key"].help_text = "Set, never shown. A new one replaces it."
        if self.instance.sealed_headers:
            self.fields[
                "headers"
            ].help_text = "Set, never shown. What you write replaces all of them."
        offer_groups(self, self.instance)
        dress(self)

    @property
    def has_address(self) -> bool:
        """Whether the chosen kind is somewhere; the demo is nowhere."""
        kind = KINDS.get(str(self["kind"].value()))
        return kind is None or bool(kind.base_url)

    @property
    def usual_addresses(self) -> list[str]:
        """Addresses of the kinds, to choose from."""
        return sorted({kind.base_url for kind in KINDS.values() if kind.base_url})

    @property
    def usual_variables(self) -> list[str]:
        """Names of environment variables that usually hold keys."""
        return sorted({kind.env_key for kind in KINDS.values() if kind.env_key})

    def clean_base_url(self) -> str:
        """Refuse what is no address of a web server."""
        url: str = self.cleaned_data["base_url"].strip().rstrip("/")
        kind = KINDS.get(self.cleaned_data.get("kind", ""))
        if not url:
            return kind.base_url if kind else ""
        if flaw := flaw_of_address(url):
            raise forms.ValidationError(f"{url!r} is no web address: {flaw}.")
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise forms.ValidationError(
                f"{url!r} is no web address that paths can follow: leave out what "
                "stands from ? or # on."
            )
        if names_a_person(url):
            raise forms.ValidationError(
                "Leave name and password out of the address, where they would be "
                "shown. A key goes into the field Key, the rest into Extra headers."
            )
        try:
            net_policy().check_url(url)
        except AddressRefused as refused:
            raise forms.ValidationError(str(refused)) from None
        return url

    def clean_key(self) -> str:
        """Refuse what cannot stand in a header."""
        key: str = self.cleaned_data["key"].strip()
        if not key.isascii() or not key.isprintable():
            raise forms.ValidationError(
                "A key is one line of plain letters, digits and signs."
            )
        return key

    def clean_key_env(self) -> str:
        """Refuse a key where the name of a variable is meant."""
        name: str = self.cleaned_data["key_env"].strip()
        if name and not ENV_NAME.match(name):
            raise forms.ValidationError(
                "The name of an environment variable has letters, digits and "
                "underscores. A key itself goes into the field Key."
            )
        if name and not self.instance.may_read(name):
            raise forms.ValidationError(
                f"{name!r} cannot hold a provider's key. Its name ends in _KEY or "
                "_TOKEN, or the operator lists it in AGENTSITE_KEY_VARIABLES."
            )
        return name

    def clean_headers(self) -> str:
        """Refuse lines that are no header, by number."""
        text: str = self.cleaned_data["headers"].strip()
        for number, line in enumerate(text.splitlines(), 1):
            name, colon, value = line.partition(":")
            plain = value.isascii() and value.strip().isprintable()
            if line.strip() and not (
                colon and plain and re.fullmatch(r"[A-Za-z0-9-]+", name.strip())
            ):
                raise forms.ValidationError(
                    f"Line {number} is no header. Write Name: value."
                )
        return text

    def clean(self) -> dict[str, Any]:
        """Ask for a group where one is meant."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        check_groups(self, given)
        return given

    def save(self, commit: bool = True) -> Provider:
        """Seal the secrets that were typed, and keep the others."""
        given = self.cleaned_data
        if given["key"] or given["forget_key"]:
            self.instance.set_key(given["key"])
        if given["headers"] or given["forget_headers"]:
            self.instance.set_headers(given["headers"])
        self.instance.forget_test(unless=self.reached)
        provider = super().save(commit)
        if commit:
            share_with(provider, given["groups"])
        return provider
