"""URLs of the MCP endpoint, with or without a trailing slash."""

from django.urls import re_path

from runs.mcp_server.views import (
    AgentToolset,
    BuildToolset,
    InspectionToolset,
    mcp_view,
)

urlpatterns = [
    re_path(r"^mcp/?$", mcp_view(AgentToolset()), name="mcp"),
    re_path(r"^mcp/inspect/?$", mcp_view(InspectionToolset()), name="mcp-inspect"),
    re_path(r"^mcp/build/?$", mcp_view(BuildToolset()), name="mcp-build"),
]
