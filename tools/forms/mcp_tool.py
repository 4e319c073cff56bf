"""The form of a tool that an MCP server offers."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from tools.forms.tool import ToolForm
from tools.typed_generics import StrOrPromise


class McpToolForm(ToolForm):
    """Imported from the server; only our own settings can be changed."""

    kind: ClassVar[str] = "mcp"
    kind_label: ClassVar[StrOrPromise] = _("MCP tool")
    kind_section_title: ClassVar[StrOrPromise] = _("Server")
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "server_display",
        "arguments_display",
    )
    can_be_created: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        stored: dict[str, Any] = self.instance.config
        return stored
