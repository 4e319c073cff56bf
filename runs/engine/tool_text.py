"""Tools as text: the values of `{tools}` and `{tool_names}` in prompts."""

import json
from collections.abc import Sequence
from typing import assert_never

from tools.spec import ToolSpec

NO_TOOLS = "(there are no tools)"


def render_tool_variables(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Return the variables `tools`, one paragraph per tool, and `tool_names`."""
    return {
        "tools": "\n".join(_format_tool(tool) for tool in tools) or NO_TOOLS,
        "tool_names": ", ".join(tool.name for tool in tools) or "none",
    }


def _format_tool(tool: ToolSpec) -> str:
    head = f"{tool.name}: {tool.description}" if tool.description else tool.name
    match tool.takes:
        case "text":
            return head
        case "nothing":
            return f"{head} (takes no input)"
        case "arguments":
            return f"{head} (input: {_format_arguments(tool)})"
        case _:
            assert_never(tool.takes)


def _format_arguments(tool: ToolSpec) -> str:
    schema = tool.args_schema or {}
    required = schema.get("required") or []
    text = json.dumps(schema["properties"], ensure_ascii=False)
    needs = f"; required: {', '.join(map(str, required))}" if required else ""
    return f"a JSON object with {text}{needs}"
