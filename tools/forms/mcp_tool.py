"""The form of a tool that an MCP server offers."""

from typing import Any, ClassVar

from tools.forms.tool import ToolForm


class McpToolForm(ToolForm):
    """Made by taking a tool over from its server; only our own side can be changed."""

    kind: ClassVar[str] = "mcp"
    word: ClassVar[str] = "MCP tool"
    own_title: ClassVar[str] = "Server"
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "server_shown",
        "arguments_shown",
    )
    is_typed_in: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """Return what was accepted; nothing of it is typed in."""
        stored: dict[str, Any] = self.instance.config
        return stored
