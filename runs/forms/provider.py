"""The form of a provider; the stored key and headers are never shown."""

import re
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.llm.registry import PROVIDER_KINDS
from runs.models import Provider
from runs.services.providers.client import get_provider_net_policy
from runs.services.providers.outages import end_outages
from runs.ui.kind_labels import list_provider_kind_choices
from tools.net.address_flaw import find_address_flaw
from tools.net.netpolicy import AddressRefused
from tools.net.reserved_headers import is_reserved_header
from tools.net.web_address import has_userinfo

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
CONNECTION_FIELDS = ("kind", "base_url", "key", "key_env", "headers", "timeout")


class TypedProvider(NamedTuple):
    """A provider as typed into the form, not saved."""

    provider: Provider
    has_withheld_secrets: bool
    """Whether stored secrets are left out, as the URL has another host."""


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Provider]
else:
    _ModelForm = forms.ModelForm


class ProviderForm(_ModelForm):
    """The address of a model server and the access to it."""

    kind = forms.ChoiceField(
        choices=list_provider_kind_choices, label=gettext_lazy("Kind")
    )
    base_url = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Base URL"),
        help_text=gettext_lazy(
            "For example http://127.0.0.1:11434/v1. Leave empty to use the default "
            "URL of the kind."
        ),
        widget=forms.TextInput(
            attrs={"inputmode": "url", "list": "provider-addresses"}
        ),
    )
    key = forms.CharField(
        required=False,
        label=gettext_lazy("API key"),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted and never shown again."),
    )
    forget_key = forms.BooleanField(
        required=False, label=gettext_lazy("Remove the stored key")
    )
    headers = forms.CharField(
        required=False,
        label=gettext_lazy("Extra headers"),
        widget=monospace_textarea(2),
        help_text=gettext_lazy(
            "One per line, as Name: value. Stored encrypted and never shown again."
        ),
    )
    forget_headers = forms.BooleanField(
        required=False, label=gettext_lazy("Remove the stored headers")
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
            "outage_minutes",
            "max_concurrent_runs",
            "requests_per_minute",
            "tokens_per_minute",
            "stream",
            "visibility",
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "key_env": gettext_lazy("Environment variable with the API key"),
            "default_model": gettext_lazy("Default model"),
            "timeout": gettext_lazy("Idle timeout"),
            "outage_minutes": gettext_lazy("Maximum outage wait"),
            "max_concurrent_runs": gettext_lazy("Runs at once"),
            "requests_per_minute": gettext_lazy("Requests per minute"),
            "tokens_per_minute": gettext_lazy("Tokens per minute"),
            "stream": gettext_lazy("Stream responses"),
            "visibility": gettext_lazy("Shared with"),
        }
        help_texts = {
            "key_env": gettext_lazy(
                "Read by the worker if no API key is stored, for example "
                "OPENAI_API_KEY."
            ),
            "default_model": gettext_lazy("Preselected for new agents."),
            "timeout": gettext_lazy(
                "A call fails if the server sends nothing for this long."
            ),
            "requests_per_minute": gettext_lazy(
                "Of all workers together; more requests wait. Leave empty for no limit."
            ),
            "tokens_per_minute": gettext_lazy(
                "Of requests and replies, estimated until a reply says how many."
            ),
            "max_concurrent_runs": gettext_lazy(
                "Additional runs wait until one ends. Leave empty for no limit."
            ),
            "outage_minutes": gettext_lazy(
                "How long runs wait while the server is unavailable. 0: they fail "
                "after a few retries."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = copy(self.instance)
        self.label_suffix = ""
        for name in ("timeout", "outage_minutes"):
            self.fields[name].widget.attrs["step"] = "any"
            self.initial[name] = f"{getattr(self.instance, name):g}"
        if self.instance.owner.is_superuser:
            self.fields["key_env"].widget.attrs["list"] = "provider-variables"
        else:
            del self.fields["key_env"]
        self.fields["default_model"].widget.attrs["list"] = "provider-models"
        if self.instance.sealed_key:
            self.fields["key"].help_text = _(
                "A key is stored. Enter a new one to replace it."
            )
        if self.is_bound and self.data.get("key"):
            self.fields["key"].help_text = _(
                "Enter the key again: it is not saved yet, and it is never shown."
            )
        if self.instance.sealed_headers:
            self.fields["headers"].help_text = _(
                "Headers are stored. New headers replace all of them."
            )
        add_groups_field(self, self.instance)
        style_widgets(self)

    @property
    def has_address(self) -> bool:
        """Whether the selected kind has an address; the demo has none."""
        kind = PROVIDER_KINDS.get(str(self["kind"].value()))
        return kind is None or kind.needs_server

    @property
    def default_base_urls(self) -> list[str]:
        return sorted(
            {kind.base_url for kind in PROVIDER_KINDS.values() if kind.base_url}
        )

    @property
    def common_key_variables(self) -> list[str]:
        """Environment variables that usually hold API keys."""
        return sorted(
            {kind.env_key for kind in PROVIDER_KINDS.values() if kind.env_key}
        )

    def clean_base_url(self) -> str:
        """Normalize the URL; refuse invalid and forbidden addresses."""
        url: str = self.cleaned_data["base_url"].strip().rstrip("/")
        kind = PROVIDER_KINDS.get(self.cleaned_data.get("kind", ""))
        if kind is not None and not kind.needs_server:
            return ""
        if not url:
            if kind is not None and not kind.base_url:
                raise forms.ValidationError(_("Enter the base URL of the server."))
            return kind.base_url if kind else ""
        if flaw := find_address_flaw(url):
            raise forms.ValidationError(
                _("%(url)s is not a valid web address: %(reason)s.")
                % {"url": repr(url), "reason": flaw}
            )
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise forms.ValidationError(
                _(
                    "%(url)s cannot be a base URL, because paths are appended to it. "
                    "Remove everything from ? or # on."
                )
                % {"url": repr(url)}
            )
        if has_userinfo(url):
            raise forms.ValidationError(
                _(
                    "Remove the user name and password from the URL, where they would "
                    "be visible. Enter a key in the field API key, anything else in "
                    "Extra headers."
                )
            )
        try:
            get_provider_net_policy().check_url(url)
        except AddressRefused as refused:
            raise forms.ValidationError(str(refused)) from None
        return url

    def clean_key(self) -> str:
        """Refuse a key that cannot be sent in a header."""
        key: str = self.cleaned_data["key"].strip()
        if not key.isascii() or not key.isprintable():
            raise forms.ValidationError(
                _("Enter the key as one line of ASCII letters, digits and signs.")
            )
        return key

    def clean_key_env(self) -> str:
        """Refuse a key entered as the name of a variable, and variables not allowed."""
        name: str = self.cleaned_data["key_env"].strip()
        if name and not ENV_NAME.match(name):
            raise forms.ValidationError(
                _(
                    "Enter the name of an environment variable: letters, digits and "
                    "underscores. Enter a key itself in the field API key."
                )
            )
        if name and not self.instance.may_read(name):
            raise forms.ValidationError(
                _(
                    "%(name)s is not allowed to hold a provider's key. Use a variable "
                    "whose name ends in _KEY or _TOKEN, or ask the operator to list "
                    "it in AGENTSITE_KEY_VARIABLES."
                )
                % {"name": repr(name)}
            )
        return name

    def clean_headers(self) -> str:
        """Refuse lines that are not headers, by number."""
        text: str = self.cleaned_data["headers"].strip()
        for number, line in enumerate(text.splitlines(), 1):
            name, colon, value = line.partition(":")
            plain = value.isascii() and value.strip().isprintable()
            if line.strip() and not (
                colon and plain and re.fullmatch(r"[A-Za-z0-9-]+", name.strip())
            ):
                raise forms.ValidationError(
                    _("Line %(number)s is not a header. Enter Name: value.")
                    % {"number": number}
                )
            if is_reserved_header(name):
                raise forms.ValidationError(
                    _(
                        "Line %(number)s: the header “%(name)s” is set by the "
                        "connection. Remove the line."
                    )
                    % {"number": number, "name": name.strip()}
                )
        return text

    def clean(self) -> dict[str, Any]:
        """Require a group if the provider is shared with groups."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        return given

    def list_connection_errors(self) -> list[str]:
        """Return what prevents a connection test, each error with its field."""
        return [
            f"{self[name].label}: {error}"
            for name in CONNECTION_FIELDS
            for error in self.errors.get(name, [])
        ]

    def build_typed_provider(self) -> TypedProvider:
        """Return the provider to test; needs a form without connection errors.

        Stored secrets go only to the host for which they were stored.
        """
        given, typed, stored = self.cleaned_data, copy(self.instance), self.stored
        typed.slug = typed.slug or typed.name or "new"  # for messages
        withheld = False
        if not may_reuse_secret(stored.base_url, typed.base_url):
            withheld = bool(
                (stored.sealed_key and not (given["key"] or given["forget_key"]))
                or (
                    stored.sealed_headers
                    and not (given["headers"] or given["forget_headers"])
                )
                or (stored.key_env and typed.key_env == stored.key_env)
            )
            typed.sealed_key = typed.sealed_headers = ""
            if typed.key_env == stored.key_env:
                typed.key_env = ""
        if given["key"] or given["forget_key"]:
            typed.set_key(given["key"])
        if given["headers"] or given["forget_headers"]:
            typed.set_headers(given["headers"])
        return TypedProvider(typed, withheld)

    def save(self, commit: bool = True) -> Provider:
        """Encrypt new secrets and keep the other ones."""
        given = self.cleaned_data
        if given["key"] or given["forget_key"]:
            self.instance.set_key(given["key"])
        if given["headers"] or given["forget_headers"]:
            self.instance.set_headers(given["headers"])
        if not self.instance.may_read(self.instance.key_env):
            self.instance.key_env = ""  # a later owner could read it, for this URL
        self.instance.reset_test(unless=self.stored.connection_settings)
        provider = super().save(commit)
        if commit:
            save_shared_groups(provider, given["groups"])
            if provider.connection_settings != self.stored.connection_settings:
                end_outages(provider)
        return provider


def may_reuse_secret(stored: str, typed: str) -> bool:
    """Whether a secret stored for one URL may be sent to the other."""
    old, new = urlsplit(stored), urlsplit(typed)
    is_downgrade = old.scheme == "https" and new.scheme != "https"
    return old.hostname == new.hostname and not is_downgrade
