"""The form of a credential: its secret can be written, never read."""

from typing import Any

from django import forms

from tools.forms.fields import HostsField, check_groups
from tools.generic import ModelForm
from tools.kinds.http_config import NOT_OURS
from tools.models import Credential
from tools.secrets import seal


class CredentialForm(ModelForm):
    """A secret, how it is sent, and to whom."""

    hosts = HostsField(
        label="Hosts",
        help_text="The only hosts it is ever sent to, one a line.",
    )
    secret = forms.CharField(
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = Credential
        fields = ("name", "kind", "field", "hosts", "visibility", "groups")
        labels = {
            "field": "Header, parameter or user name",
            "visibility": "Who may use it",
        }
        help_texts = {
            "field": "Name of the header or query parameter; for basic authentication "
            "the user name; empty for a bearer token.",
            "visibility": "In a tool of theirs. Nobody can read it.",
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        if "secret" in self.fields:
            stored = bool(self.instance.sealed)
            self.fields["secret"].is_needed = not stored  # type: ignore[attr-defined]  # for the template
            self.fields["secret"].help_text = (
                "A secret is stored. Empty: keep it."
                if stored
                else "Stored encrypted, and never shown again."
            )
        if "groups" in self.fields:
            self.fields["groups"].required = False

    def clean(self) -> dict[str, Any] | None:
        """Ask for the name a kind needs, and for a secret where none is stored."""
        cleaned = super().clean() or {}
        check_groups(self)
        kind, name = cleaned.get("kind"), cleaned.get("field", "")
        if kind in (Credential.Kind.HEADER, Credential.Kind.QUERY) and not name:
            self.add_error("field", "Say the name of the header or parameter.")
        if kind == Credential.Kind.BASIC and not name:
            self.add_error("field", "Say the user name.")
        if kind == Credential.Kind.HEADER and name and not is_token(name):
            self.add_error("field", f"{name!r} is no name of a header.")
        if kind == Credential.Kind.HEADER and name.lower() in NOT_OURS:
            self.add_error("field", f"The header {name!r} belongs to the connection.")
        secret = cleaned.get("secret", "")
        if not secret and not self.instance.sealed:
            self.add_error("secret", "Type in the secret.")
        if not secret.isascii() or not secret.isprintable():
            self.add_error("secret", "It has characters that cannot be sent.")
        return cleaned

    def save(self, commit: bool = True) -> Credential:
        """Seal the secret where one was typed."""
        if self.cleaned_data.get("secret"):
            self.instance.sealed = seal(self.cleaned_data["secret"])
        saved: Credential = super().save(commit)
        return saved


def is_token(name: str) -> bool:
    """Whether `name` can be the name of a header."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()
