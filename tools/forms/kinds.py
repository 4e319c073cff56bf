"""The forms of all tool kinds, in the order of the menu."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from tools.forms.function_tool import FunctionToolForm
from tools.forms.http_tool import HttpToolForm
from tools.forms.python_tool import PythonToolForm
from tools.forms.sql_tool import SqlToolForm
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


TOOL_FORMS: dict[str, type[ToolForm]] = {
    form.kind: form
    for form in (
        *(FunctionToolForm, HttpToolForm, PythonToolForm, SqlToolForm),
        McpToolForm,
    )
}
