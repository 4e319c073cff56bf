"""What pages say about tools."""

from django.conf import settings
from django.contrib.auth.models import User

from tools.forms.kinds import FORMS
from tools.forms.tool import REACHES_OUT
from tools.models import Tool
from tools.ownership import Visibility
from tools.registry import keeps_hosts, registered
from tools.sql.connections import read_connections

KIND_WORDS = {kind: form.word for kind, form in FORMS.items()}


def who_may(tool: Tool) -> str:
    """Say who may give the tool to an agent."""
    if tool.visibility == Visibility.EVERYONE:
        return "Everyone"
    owner = tool.owner.get_full_name() or tool.owner.get_username()
    if tool.visibility == Visibility.PRIVATE:
        return f"Only the owner, {owner}"
    names = ", ".join(tool.groups.values_list("name", flat=True))
    only = f"Only the owner, {owner}"
    return f"The owner, {owner}, and the groups {names}" if names else only


def hosts_of(tool: Tool) -> str:
    """Say which hosts a call may reach."""
    named = ", ".join(tool.hosts)
    if tool.kind not in REACHES_OUT:
        return "None"
    if tool.kind == "function" and not keeps_hosts(path_of(tool)):
        return (
            f"Only {named}, which its function does not keep to: calls are refused"
            if named
            else "Those its function chooses"
        )
    return named or "Every public one"


def path_of(tool: Tool) -> str:
    """Return the function of a function tool, as `module:function`."""
    return str(tool.config.get("function", ""))


def call_flaw(tool: Tool) -> str:
    """Say why each call fails as things are; nothing where none is known to."""
    if tool.kind == "function" and path_of(tool) not in registered():
        return "Its function is not registered any more: each call fails."
    if tool.kind == "sql":
        name = str(tool.config.get("connection", ""))
        if not name:
            return "It has no database: each call fails."
        if name not in read_connections(settings.SQL_CONNECTIONS):
            return f"There is no database {name!r} any more: each call fails."
    if tool.kind == "mcp" and tool.mcp_server is None:
        return "It has no MCP server: each call fails."
    if tool.credential and not tool.credential.sealed:
        return f"Its credential {tool.credential} has no secret: each call fails."
    return ""


def change_waits(tool: Tool) -> str:
    """Say that a change which its server made waits for a person; nothing for none."""
    pin = getattr(tool, "pin", None)
    if pin is None or pin.noticed_at is None:
        return ""
    return "Its server changed it: no call is made until somebody accepts the change."


def may_edit(tool: Tool, user: User) -> bool:
    """Whether `user` may change the tool in the admin."""
    return (
        user.is_staff
        and user.has_perm("tools.change_tool")
        and Tool.objects.editable_by(user).filter(pk=tool.pk).exists()
    )
