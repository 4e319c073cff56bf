"""The form of an MCP server: an address, or the name of a command."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings

from tools.credentials import covers
from tools.generic import ModelForm
from tools.mcp.commands import read_commands
from tools.models import Credential, McpServer


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
            "url": "For streamable HTTP, such as https://mcp.example.com/mcp. Private "
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
        if flaw := flaw_of_url(cleaned.get("url", "")):
            self.add_error("url", flaw)
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


def flaw_of_url(url: str) -> str:
    """Return why `url` is no address of a server; empty for a good one."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # it raises where the port is none
    except ValueError as error:
        return f"This is no address ({error})."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "An address begins with https:// and a host."
    if "@" in parts.netloc:
        return "A password belongs into a credential."
    return ""
