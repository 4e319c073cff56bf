"""What can be done with tools: one operation a file, all of them named here."""

from tools.services.accept_mcp_change import accept_mcp_change
from tools.services.delete_unused import delete_unused, users_of
from tools.services.duplicate_tool import duplicate_tool
from tools.services.ensure_builtin_tools import ensure_builtin_tools
from tools.services.import_mcp_tools import discover_mcp_tools, import_mcp_tools
from tools.services.keep_mcp_tool_off import keep_mcp_tool_off
from tools.services.note_mcp_change import note_mcp_change
from tools.services.record_usage import record_usage
from tools.services.restore_revision import restore_revision
from tools.services.save_tool import save_tool
from tools.services.tool_may_run import tool_may_run
from tools.services.tool_spec_of import tool_spec_of
from tools.services.try_tool import TryResult, try_tool

__all__ = [
    "TryResult",
    "accept_mcp_change",
    "delete_unused",
    "discover_mcp_tools",
    "duplicate_tool",
    "ensure_builtin_tools",
    "import_mcp_tools",
    "keep_mcp_tool_off",
    "note_mcp_change",
    "record_usage",
    "restore_revision",
    "save_tool",
    "tool_may_run",
    "tool_spec_of",
    "try_tool",
    "users_of",
]
