"""The forms of all kinds, one line each, in the order they are offered."""

from tools.forms.function_tool import FunctionToolForm
from tools.forms.http_tool import HttpToolForm
from tools.forms.mcp_tool import McpToolForm
from tools.forms.python_tool import PythonToolForm
from tools.forms.sql_tool import SqlToolForm
from tools.forms.tool import ToolForm

FORMS: dict[str, type[ToolForm]] = {
    form.kind: form
    for form in (
        *(FunctionToolForm, HttpToolForm, PythonToolForm, SqlToolForm),
        McpToolForm,
    )
}
