"""Texts about tools on pages."""

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.accounts.person_name import get_person_name
from tools.forms.kinds import TOOL_FORMS
from tools.forms.tool import NETWORK_KINDS
from tools.models import Tool
from tools.ownership import Visibility
from tools.registry import get_registered_functions, supports_host_limit
from tools.sql.connections import parse_sql_connections
from tools.typed_generics import StrOrPromise

KIND_LABELS: dict[str, StrOrPromise] = {
    kind: form.kind_label for kind, form in TOOL_FORMS.items()
}


def describe_tool_access(tool: Tool) -> str:
    if tool.visibility == Visibility.EVERYONE:
        return _("Everyone")
    owner = get_person_name(tool.owner)
    names = list(tool.groups.values_list("name", flat=True))
    if tool.visibility == Visibility.PRIVATE or not names:
        return _("Only the owner, %(owner)s") % {"owner": owner}
    return ngettext(
        "The owner, %(owner)s, and the group %(groups)s",
        "The owner, %(owner)s, and the groups %(groups)s",
        len(names),
    ) % {"owner": owner, "groups": ", ".join(names)}


def describe_tool_hosts(tool: Tool) -> str:
    named = ", ".join(tool.hosts)
    if tool.kind not in NETWORK_KINDS:
        return _("None")
    if tool.kind == "function" and not supports_host_limit(get_function_path(tool)):
        return (
            _("Only %(hosts)s; calls are refused: the function cannot be restricted")
            % {"hosts": named}
            if named
            else _("Any that the function uses")
        )
    return named or _("All public hosts")


def get_function_path(tool: Tool) -> str:
    return str(tool.config.get("function", ""))


def find_call_flaw(tool: Tool) -> str:
    """Return why every call will fail; empty if no reason is known."""
    if (
        tool.kind == "function"
        and get_function_path(tool) not in get_registered_functions()
    ):
        return _("Every call fails: the function is no longer registered.")
    if tool.kind == "sql":
        name = str(tool.config.get("connection", ""))
        if not name:
            return _("Every call fails: no database is selected.")
        if name not in parse_sql_connections(settings.SQL_CONNECTIONS):
            return _(
                "Every call fails: the database “%(name)s” is no longer listed."
            ) % {"name": name}
    if tool.kind == "mcp" and tool.mcp_server is None:
        return _("Every call fails: the tool has no MCP server.")
    if tool.credential and not tool.credential.sealed:
        return _("Every call fails: the credential “%(name)s” has no secret.") % {
            "name": tool.credential
        }
    return ""


def describe_pending_change(tool: Tool) -> str:
    """Return that a change by the server awaits review; empty if none does."""
    pin = getattr(tool, "pin", None)
    if pin is None or pin.noticed_at is None:
        return ""
    return _(
        "The server changed this tool. It is disabled until the change is accepted."
    )


def can_test_tools(user: User) -> bool:
    """Whether `user` may call the tools they see from their pages."""
    return user.is_staff and user.has_perm("tools.view_tool")


def can_edit_tool(tool: Tool, user: User) -> bool:
    """Whether `user` may change the tool in the admin."""
    return (
        user.is_staff
        and user.has_perm("tools.change_tool")
        and Tool.objects.editable_by(user).filter(pk=tool.pk).exists()
    )
