"""The form of a credential; its secret is write-only."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.forms.fields import BindingsField, require_group_if_shared
from tools.models import Credential
from tools.net.reserved_headers import is_reserved_header
from tools.secrets import seal
from tools.typed_generics import ModelForm


class CredentialForm(ModelForm):
    hosts = BindingsField(
        label=gettext_lazy("Hosts"),
        help_text=gettext_lazy(
            "The only hosts the secret is sent to, one per line. A name means HTTPS on "
            "port 443; for others enter scheme and port, such as http://localhost:8080."
        ),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret"),
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = Credential
        fields = ("name", "kind", "field", "hosts", "visibility", "groups")
        labels = {
            "name": gettext_lazy("Name"),
            "kind": gettext_lazy("Type"),
            "field": gettext_lazy("Header, parameter or user name"),
            "visibility": gettext_lazy("Shared with"),
            "groups": gettext_lazy("Groups"),
        }
        help_texts = {
            "field": gettext_lazy(
                "The name of the header or query parameter, or the user name for "
                "basic authentication. Leave empty for a bearer token."
            ),
            "visibility": gettext_lazy(
                "People who can use the credential in their tools. Nobody can read "
                "the secret."
            ),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        if "secret" in self.fields:
            stored = bool(self.instance.sealed)
            self.fields["secret"].is_needed = not stored  # type: ignore[attr-defined]  # for the template
            self.fields["secret"].help_text = (
                _("A secret is stored. Leave empty to keep it.")
                if stored
                else _("Stored encrypted and never shown again.")
            )
        if "groups" in self.fields:
            self.fields["groups"].required = False

    def clean(self) -> dict[str, Any] | None:
        """Require the name that the type needs, and a secret if none is stored."""
        cleaned = super().clean() or {}
        require_group_if_shared(self)
        kind, name = cleaned.get("kind"), cleaned.get("field", "")
        if kind in (Credential.Kind.HEADER, Credential.Kind.QUERY) and not name:
            self.add_error("field", _("Enter the name of the header or parameter."))
        if kind == Credential.Kind.BASIC and not name:
            self.add_error("field", _("Enter the user name."))
        if kind == Credential.Kind.HEADER and name and not is_header_token(name):
            self.add_error(
                "field",
                _(
                    "“%(name)s” is not a valid header name. Use letters, digits, "
                    "- and _."
                )
                % {"name": name},
            )
        if kind == Credential.Kind.HEADER and is_reserved_header(name):
            self.add_error(
                "field",
                _("The header “%(name)s” is set by the connection. Use another one.")
                % {"name": name},
            )
        secret = cleaned.get("secret", "")
        if not secret and not self.instance.sealed:
            self.add_error("secret", _("Enter the secret."))
        if not secret.isascii() or not secret.isprintable():
            self.add_error("secret", _("Use only printable ASCII characters."))
        return cleaned

    def save(self, commit: bool = True) -> Credential:
        """Encrypt the secret if one was entered."""
        if self.cleaned_data.get("secret"):
            self.instance.sealed = seal(self.cleaned_data["secret"])
        saved: Credential = super().save(commit)
        return saved


def is_header_token(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()
