"""What one call reaches, in a line for the person who is asked about it."""

from typing import Any

from pydantic import ValidationError

from tools.audit.masking import mask_json_value
from tools.errors import ToolFailed
from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.models import Credential, McpServer
from tools.spec import ToolSpec


def describe_call_target(spec: ToolSpec, tool_input: Any) -> str:
    """Return what a call with `tool_input` reaches: address, server or function.

    No secret is in it. A later call with the same line goes to the same place; what
    the operator or an admin changed meanwhile gives another line.
    """
    match spec.kind:
        case "http":
            return _describe_request(spec, tool_input)
        case "mcp":
            return _describe_server(spec)
        case "sql":
            name = spec.config.get("connection", "")
            return f"The database {name!r}, only to read" if name else "A database"
        case "python":
            return "Python code in a sandbox, without network or files"
        case "function":
            credential = _describe_credential(spec.config.get("credential"))
            return f"Python function {spec.config.get('function', '')}{credential}"
        case "agent":
            return f"The agent {spec.config.get('agent', '')}, in a run of its own"
        case _:
            return f"A tool of the kind {spec.kind}"


def _describe_request(spec: ToolSpec, tool_input: Any) -> str:
    try:
        config = HttpConfig.model_validate(spec.config)
    except ValidationError:
        return "An HTTP request that is not configured correctly"
    try:
        asked = build_http_request(config, tool_input)
        line = f"{asked.method} {mask_json_value(asked.url)}"
    except ToolFailed:
        line = f"{config.method} {mask_json_value(config.url)}"
    return line + _describe_credential(config.credential)


def _describe_server(spec: ToolSpec) -> str:
    row: Any = McpServer.objects.filter(pk=spec.config.get("mcp_server") or 0).first()
    if row is None:
        return "A tool of an MCP server that is gone"
    where = row.url if row.transport == McpServer.Transport.HTTP else row.command
    tool = spec.config.get("tool") or spec.name
    credential = _describe_credential(row.credential_id)
    return (
        f"{tool} of the MCP server {row.name!r} at {mask_json_value(where)}{credential}"
    )


def _describe_credential(pk: int | None) -> str:
    if pk is None:
        return ""
    name = Credential.objects.filter(pk=pk).values_list("name", flat=True).first()
    return f" with the credential {name!r}" if name else " with a credential"
