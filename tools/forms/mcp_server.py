"""The form of an MCP server: an address, or the name of a command."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.utils.text import capfirst

from tools.credentials import covers
from tools.generic import ModelForm
from tools.mcp.commands import read_commands
from tools.models import Credential, McpServer
from tools.web_address import flaw_of_address, names_a_person


class McpServerForm(ModelForm):
    """Saving asks the server nothing and starts no process."""

    command = forms.ChoiceField(
        required=False,
        help_text="An operator lists commands in AGENTSITE_MCP_COMMANDS. Nobody can "
        "type one in here.",
    )

    class Meta:
        model = McpServer
        fields = (
            *("name", "transport", "url", "credential", "command"),
            *("visibility", "groups"),
        )
        labels = {"url": "Address", "visibility": "Who may use it"}
        help_texts = {
            "url": "Such as https://mcp.example.com/mcp. Private "
            "addresses only where an operator allowed them (mcp= in "
            "AGENTSITE_PRIVATE_HOSTS).",
            "credential": "Sent with each request, to the hosts it is bound to.",
            "visibility": "Who may take over its tools.",
        }
        widgets = {
            "transport": forms.RadioSelect,
            "url": forms.TextInput(attrs={"class": "vURLField mono"}),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields.get("command")
        if isinstance(field, forms.ChoiceField):
            names = list(read_commands(settings.MCP_COMMANDS))
            if self.instance.command and self.instance.command not in names:
                names.append(self.instance.command)
            first = "choose one" if names else "the operator listed none"
            field.choices = [("", first), *((name, name) for name in names)]
        if "url" in self.fields:
            self.fields["url"].is_needed = True  # type: ignore[attr-defined]  # for the template
        for name in ("credential", "groups"):
            if name in self.fields:
                self.fields[name].required = False

    def clean(self) -> dict[str, Any] | None:
        """Ask for what the way to the server needs; drop what it does not."""
        cleaned = super().clean() or {}
        if cleaned.get("transport") == McpServer.Transport.STDIO:
            cleaned["url"], cleaned["credential"] = "", None
            command = cleaned.get("command", "")
            if not command:
                self.add_error("command", "Choose a command of the operator's list.")
            elif command not in read_commands(settings.MCP_COMMANDS):
                self.add_error("command", f"{command!r} is not in the list any more.")
            return cleaned
        cleaned["command"] = ""
        url = cleaned.get("url", "")
        if flaw := flaw_of_address(url):
            self.add_error("url", f"{capfirst(flaw)}.")
        elif names_a_person(url):
            self.add_error("url", "A password belongs into a credential.")
        else:
            self.check_credential(cleaned)
        return cleaned

    def check_credential(self, cleaned: dict[str, Any]) -> None:
        """Refuse a credential that is not bound to the host."""
        credential: Credential | None = cleaned.get("credential")
        host = (urlsplit(cleaned["url"]).hostname or "").lower()
        if credential and not any(covers(one, host) for one in credential.hosts):
            self.add_error(
                "credential",
                f"This credential is bound to {', '.join(credential.hosts)}, "
                f"and not to {host}.",
            )
