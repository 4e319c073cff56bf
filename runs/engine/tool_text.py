"""Tools as text: what `{tools}` and `{tool_names}` stand for in prompts."""

import json
from collections.abc import Sequence
from typing import assert_never

from tools.spec import ToolSpec

NO_TOOLS = "(there are no tools)"


def tool_texts(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Return the variables `tools`, a paragraph for each, and `tool_names`."""
    return {
        "tools": "\n".join(_line(tool) for tool in tools) or NO_TOOLS,
        "tool_names": ", ".join(tool.name for tool in tools) or "none",
    }


def _line(tool: ToolSpec) -> str:
    head = f"{tool.name}: {tool.description}" if tool.description else tool.name
    match tool.takes:
        case "text":
            return head
        case "nothing":
            return f"{head} (takes no input)"
        case "arguments":
            return f"{head} (input: {_arguments(tool)})"
        case _:
            assert_never(tool.takes)


def _arguments(tool: ToolSpec) -> str:
    schema = tool.args_schema or {}
    required = schema.get("required") or []
    text = json.dumps(schema["properties"], ensure_ascii=False)
    needs = f"; required: {', '.join(map(str, required))}" if required else ""
    return f"a JSON object with {text}{needs}"
