"""The Django application `tools`."""

import sys

from django.apps import AppConfig
from django.conf import settings

from tools.mcp.commands import parse_server_commands
from tools.net.outbound_policy import get_net_policy
from tools.registry import ToolModuleBroken, load_tool_modules
from tools.sql.connections import parse_sql_connections

BUILTIN_MODULES = [
    f"tools.builtin.{name}"
    for name in (
        "calculator",
        "clock",
        "json_query",
        "random_values",
        "text_statistics",
        "weather",
        "weather_sample",
        "web_page",
        "web_search",
        "wikipedia",
    )
]


class ToolsConfig(AppConfig):
    """Name the app for Django, and load every function that agents may call."""

    name = "tools"

    def ready(self) -> None:
        """Import the built-in tools, then those the operator named; check the lists."""
        register_audited_models()
        load_tool_modules(BUILTIN_MODULES)
        try:
            load_tool_modules(settings.TOOL_MODULES)
            get_net_policy("tool")
        except ValueError as error:
            sys.exit(f"The variable AGENTSITE_PRIVATE_HOSTS has a wrong value: {error}")
        except ToolModuleBroken as error:
            sys.exit(str(error))
        try:
            parse_server_commands(settings.MCP_COMMANDS)
        except ValueError as error:
            sys.exit(f"The variable AGENTSITE_MCP_COMMANDS has a wrong value: {error}.")
        self.check_web_search()
        try:
            parse_sql_connections(settings.SQL_CONNECTIONS)
        except ValueError as error:
            sys.exit(
                f"The variable AGENTSITE_SQL_CONNECTIONS has a wrong value: {error}."
            )

    def check_web_search(self) -> None:
        """End the start with a sentence if the service is named wrongly."""
        # It is one of the tools, which are loaded above.
        from tools.builtin.web_search import parse_search_settings  # noqa: PLC0415

        try:
            parse_search_settings(settings.WEB_SEARCH, settings.WEB_SEARCH_KEY)
        except ValueError as error:
            sys.exit(f"The variable AGENTSITE_WEB_SEARCH has a wrong value: {error}.")


def register_audited_models() -> None:
    """Keep every change of tools, and of who may do what, in the audit log."""
    # Tables can be imported only when all apps are known.
    from django.contrib.auth.models import Group, User  # noqa: PLC0415

    from tools.audit.tracking import track_model  # noqa: PLC0415
    from tools.models import Credential, McpServer, Tool  # noqa: PLC0415

    track_model(Tool, "tool")
    track_model(Credential, "credential")
    track_model(McpServer, "MCP server")
    track_model(User, "user")
    track_model(Group, "group")
