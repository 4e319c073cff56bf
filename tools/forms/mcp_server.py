"""The form of an MCP server: a URL or the name of a command."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from tools.credentials import binding_matches, format_origin
from tools.mcp.commands import parse_server_commands
from tools.models import Credential, McpServer
from tools.net.address_flaw import find_address_flaw
from tools.net.web_address import has_userinfo
from tools.secrets import seal
from tools.typed_generics import ModelForm


class McpServerForm(ModelForm):
    """Saving sends no request and starts no process."""

    command = forms.ChoiceField(
        label=_("Command"),
        required=False,
        help_text=_(
            "Only commands that an operator listed in AGENTSITE_MCP_COMMANDS can be "
            "selected."
        ),
    )

    client_secret = forms.CharField(
        label=_("Client secret"),
        required=False,
        strip=True,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = McpServer
        fields = (
            *("name", "transport", "url", "credential", "client_id", "command"),
            "accepts_descriptions",
            *("visibility", "groups"),
        )
        labels = {
            "name": _("Name"),
            "transport": _("Transport"),
            "url": _("URL"),
            "credential": _("Credential"),
            "client_id": _("Client ID"),
            "accepts_descriptions": _("Accept changed descriptions"),
            "visibility": _("Shared with"),
            "groups": _("Groups"),
        }
        help_texts = {
            "url": _(
                "For example, https://mcp.example.com/mcp. Private addresses only if "
                "an operator allowed them (mcp= in AGENTSITE_PRIVATE_HOSTS)."
            ),
            "credential": _("Sent with each request to the hosts it is bound to."),
            "client_id": _(
                "Only for a sign-in with OAuth that requires a client you registered. "
                "Leave empty otherwise."
            ),
            "accepts_descriptions": _(
                "A tool stays enabled if only its description changes. Each change is "
                "recorded in the audit log. Select this only for a server you trust: "
                "models follow what descriptions say."
            ),
            "visibility": _("People who can import its tools."),
        }
        widgets = {
            "transport": forms.RadioSelect,
            "url": forms.TextInput(attrs={"class": "vURLField mono"}),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields.get("command")
        if isinstance(field, forms.ChoiceField):
            names = list(parse_server_commands(settings.MCP_COMMANDS))
            if self.instance.command and self.instance.command not in names:
                names.append(self.instance.command)
            first = str(_("Select one") if names else _("No commands are listed"))
            field.choices = [("", first), *((name, name) for name in names)]
        if "url" in self.fields:
            self.fields["url"].is_needed = True  # type: ignore[attr-defined]  # for the template
        if "client_secret" in self.fields and self.instance.sealed_client_secret:
            self.fields["client_secret"].help_text = _(
                "A secret is stored. Leave empty to keep it."
            )
        for name in ("credential", "groups"):
            if name in self.fields:
                self.fields[name].required = False

    def clean(self) -> dict[str, Any] | None:
        """Require what the transport needs, and drop the rest."""
        cleaned = super().clean() or {}
        if cleaned.get("transport") == McpServer.Transport.STDIO:
            cleaned["url"], cleaned["credential"] = "", None
            cleaned["client_id"] = cleaned["client_secret"] = ""
            command = cleaned.get("command", "")
            if not command:
                self.add_error("command", _("Select a command."))
            elif command not in parse_server_commands(settings.MCP_COMMANDS):
                self.add_error(
                    "command",
                    _("The command “%(name)s” is no longer listed. Select another one.")
                    % {"name": command},
                )
            return cleaned
        cleaned["command"] = ""
        url = cleaned.get("url", "")
        if flaw := find_address_flaw(url):
            self.add_error("url", f"{capfirst(flaw)}.")
        elif has_userinfo(url):
            self.add_error(
                "url",
                _("Remove the password from the URL. Store it in a credential."),
            )
        else:
            self.check_credential(cleaned)
        return cleaned

    def check_credential(self, cleaned: dict[str, Any]) -> None:
        """Refuse a credential that is not bound to the host."""
        credential: Credential | None = cleaned.get("credential")
        url, bindings = cleaned["url"], credential.hosts if credential else []
        if credential and not any(binding_matches(one, url) for one in bindings):
            self.add_error(
                "credential",
                _(
                    "The credential is bound to %(hosts)s, not to %(host)s. Select "
                    "another credential, or add the host to it."
                )
                % {"hosts": ", ".join(bindings), "host": format_origin(url)},
            )

    def save(self, commit: bool = True) -> McpServer:
        """Encrypt the client secret if one was entered; without a client, drop it."""
        if not self.cleaned_data.get("client_id"):
            self.instance.sealed_client_secret = ""
        elif self.cleaned_data.get("client_secret"):
            secret = self.cleaned_data["client_secret"]
            self.instance.sealed_client_secret = seal(secret)
        saved: McpServer = super().save(commit)
        return saved
