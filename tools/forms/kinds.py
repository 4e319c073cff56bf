"""The forms of all tool kinds, in the order of the menu."""

from tools.forms.function_tool import FunctionToolForm
from tools.forms.http_tool import HttpToolForm
from tools.forms.mcp_tool import McpToolForm
from tools.forms.python_tool import PythonToolForm
from tools.forms.sql_tool import SqlToolForm
from tools.forms.tool import ToolForm

TOOL_FORMS: dict[str, type[ToolForm]] = {
    form.kind: form
    for form in (
        *(FunctionToolForm, HttpToolForm, PythonToolForm, SqlToolForm),
        McpToolForm,
    )
}
