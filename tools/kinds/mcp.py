"""Tools of MCP servers: called only while they are what a person accepted."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import ToolFailed
from tools.kinds.call import PreparedCall
from tools.mcp.session import Session
from tools.mcp_offer import Offer
from tools.mcp_servers.connect import McpConnection, get_tool_connection, use_connection
from tools.mcp_servers.sessions import McpSessions
from tools.spec import ToolSpec
from tools.text.validation_message import strip_value_error


class McpConfig(BaseModel):
    """The definition, as it is stored and frozen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str = Field(min_length=1, max_length=200)
    """Its name on the server."""
    digest: str = ""
    """Hash of what was accepted; empty if nobody has looked yet."""
    mcp_server: int | None = None
    hosts: tuple[str, ...] = ()


class ToolNotOffered(ToolFailed):
    """The server no longer has the tool."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Its MCP server no longer offers the tool {name!r}.")


class ToolChangedOnServer(ToolFailed):
    """The definition is not the one that was accepted."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The MCP server changed the tool {name!r}. It is disabled until an "
            "administrator accepts the change."
        )


class NewerDefinitionAccepted(ToolFailed):
    """The run knows an older definition than the one that is in force."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The tool {name!r} was changed after this run began; a new run can use it."
        )


def call_mcp(call: PreparedCall) -> Any:
    """Look whether the tool is still what was accepted, then call it."""
    try:
        config = McpConfig.model_validate(call.spec.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = strip_value_error(first["msg"])
        raise ToolFailed(f"This tool is not configured correctly: {why}.") from None
    given = call.tool_input
    arguments = given if isinstance(given, dict) else {"input": given}

    def connect(rejected_token: str) -> McpConnection:
        return get_tool_connection(
            config.mcp_server,
            tool_id=call.spec.tool_id,
            deadline=call.deadline,
            hosts=config.hosts,
            rejected_token=rejected_token,
        )

    def call_over(connection: McpConnection) -> Any:
        def call_in(session: Session) -> Any:
            offer = session.find_offer(config.tool, call.deadline)
            if offer is None:
                raise ToolNotOffered(config.tool)
            if offer.digest != config.digest:
                check_changed_tool(call.spec, offer, connection)
            return session.call(
                config.tool, arguments, call.deadline, mask_progress(call, connection)
            )

        value = sessions.use_session(connection, call.deadline, call_in)
        return connection.mask_secret_in(value)

    kept = call.mcp_sessions
    with nullcontext(kept) if kept else McpSessions() as sessions:
        return use_connection(connect, call_over)


def mask_progress(
    call: PreparedCall, connection: McpConnection
) -> Callable[[str], None] | None:
    """Return what receives the progress, without the secret that the server got."""
    send = call.on_progress
    if send is None or connection.secret is None:
        return send
    return lambda line: send(str(connection.mask_secret_in(line)))


def check_changed_tool(spec: ToolSpec, offer: Offer, connection: McpConnection) -> None:
    """Record what the server says now; raise unless the run may call it all the same.

    It may if only the description changed, and its server's changes are accepted.
    """
    # The services know all kinds, and so this one.
    from tools.mcp_servers.record_change import record_mcp_change  # noqa: PLC0415

    if record_mcp_change(spec.tool_id, offer):
        raise ToolChangedOnServer(offer.name)
    if not connection.accepts_descriptions or offer.args_schema != spec.args_schema:
        raise NewerDefinitionAccepted(offer.name)
