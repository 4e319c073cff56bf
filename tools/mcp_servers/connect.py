"""Reaching a stored MCP server, if whoever asks may use it now."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import User

from tools.credentials import (
    OpenCredential,
    open_credential_for_owner,
    temporary_db_connection,
)
from tools.definition.overrides import intersect_hosts
from tools.mcp.commands import ServerCommand, find_server_command
from tools.mcp.errors import MaskedServerError, McpFailed, SignInNeeded
from tools.mcp.http import HttpLink
from tools.mcp.stdio import StdioLink
from tools.mcp.wire import Link
from tools.mcp_servers.sign_in import open_mcp_sign_in
from tools.media import MediaResult
from tools.models import McpServer, Tool
from tools.net.deadline import Deadline
from tools.net.outbound_policy import get_net_policy

T = TypeVar("T")


class ServerNotReachable(McpFailed):
    """No request is sent to the server."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The MCP server of this tool is not called: {why}.")


@dataclass(frozen=True)
class McpConnection:
    """All that is needed to open sessions with one server, out of the database."""

    command: ServerCommand | None = None
    url: str = ""
    credential: OpenCredential | None = None
    only_hosts: tuple[str, ...] = ()
    token: OpenCredential | None = field(default=None, compare=False)
    """Of a sign-in, instead of the credential; it changes within a session."""
    accepts_descriptions: bool = False
    """Whether changed descriptions are accepted without a person."""

    @property
    def secret(self) -> OpenCredential | None:
        return self.token or self.credential

    def open_link(self) -> Link:
        """Return a new link; for a command, its process. Raise `ToolFailed`."""
        if self.command is not None:
            return StdioLink(self.command)
        policy = get_net_policy("mcp", only_hosts=self.only_hosts)
        return HttpLink(self.url, policy=policy, credential=self.secret)

    @contextmanager
    def masking_errors(self) -> Iterator[None]:
        """Cover the secret in what is raised in the block."""
        try:
            yield
        except McpFailed as failed:
            message = str(failed)
            covered = self.secret.mask_secret(message) if self.secret else message
            if covered != message:
                raise MaskedServerError(covered) from None
            raise

    def mask_secret_in(self, result: Any) -> Any:
        """Return what the server said without the secret it was sent."""
        if self.secret is None:
            return result
        if isinstance(result, MediaResult):
            return replace(result, value=self.secret.mask_secret_in(result.value))
        return self.secret.mask_secret_in(result)


def get_tool_connection(
    server_id: int | None,
    *,
    tool_id: int | None,
    deadline: Deadline,
    hosts: Sequence[str] = (),
    rejected_token: str = "",
) -> McpConnection:
    """Return the way to a tool's server, if the tool's owner may still use it.

    `hosts` are those of the run; together with the tool's own they only grow fewer.
    """
    with temporary_db_connection():
        tool = Tool.objects.select_related("owner").filter(pk=tool_id or 0).first()
        if tool is None:
            raise ServerNotReachable("the tool no longer exists")
        return get_mcp_connection(
            server_id,
            by=tool.owner,
            deadline=deadline,
            only_hosts=intersect_hosts(tool.hosts, hosts),
            rejected_token=rejected_token,
        )


def get_mcp_connection(
    server_id: int | None,
    *,
    by: User,
    deadline: Deadline,
    only_hosts: Sequence[str] = (),
    rejected_token: str = "",
) -> McpConnection:
    """Return the way to a server, if `by` may use it; raise `ToolFailed`.

    The token of a sign-in is renewed if it is about to expire, or was just rejected.
    """
    server: Any = McpServer.objects.usable_by(by).filter(pk=server_id or 0).first()
    if server is None:
        raise ServerNotReachable("it is gone, or its use is no longer allowed")
    if server.transport == McpServer.Transport.STDIO:
        return McpConnection(
            find_server_command(server.command, settings.MCP_COMMANDS),
            accepts_descriptions=server.accepts_descriptions,
        )
    token = open_mcp_sign_in(server, deadline=deadline, rejected=rejected_token)
    opened = None
    if server.credential_id is not None and token is None:
        opened = open_credential_for_owner(server.credential_id, owner=server.owner)
    return McpConnection(
        url=server.url,
        credential=opened,
        only_hosts=tuple(only_hosts),
        token=token,
        accepts_descriptions=server.accepts_descriptions,
    )


def use_connection(
    connect: Callable[[str], McpConnection], act: Callable[[McpConnection], T]
) -> T:
    """Return what `act` returns, again if the server rejects the token of a sign-in.

    `connect` is given a rejected token, and then returns a connection with another.
    """
    connection = connect("")
    try:
        return act(connection)
    except SignInNeeded as refused:
        if refused.status != 401 or connection.token is None:
            raise
        return act(connect(connection.token.secret))
