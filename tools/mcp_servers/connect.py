"""Reaching a stored MCP server, if whoever asks may use it now."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from tools.credentials import Opened, connection_for_a_moment, open_credential_of
from tools.mcp.commands import Command, find_command
from tools.mcp.errors import McpFailed, Said
from tools.mcp.http import HttpLink
from tools.mcp.session import Session, session_over
from tools.mcp.stdio import StdioLink
from tools.models import McpServer, Tool
from tools.outbound import policy_of
from tools.overrides import fewer_hosts
from tools.watch import Watch


class NotReachable(McpFailed):
    """The server is not asked."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The MCP server of this tool is not asked: {why}.")


@dataclass(frozen=True)
class Reach:
    """All that is needed to open sessions with one server, out of the database."""

    command: Command | None = None
    url: str = ""
    credential: Opened | None = None
    only_hosts: Sequence[str] = ()

    @contextmanager
    def session(self, watch: Watch) -> Iterator[Session]:
        """Give a session; it ends with the block. Raise `ToolFailed`."""
        try:
            with session_over(self._link(watch)) as session:
                yield session
        except McpFailed as failed:
            told = str(failed)
            covered = self.credential.covered(told) if self.credential else told
            if covered != told:
                raise Said(covered) from None
            raise

    def covered_in(self, result: Any) -> Any:
        """Return what the server said without the secret it was sent."""
        return self.credential.covered_in(result) if self.credential else result

    def _link(self, watch: Watch) -> HttpLink | StdioLink:
        if self.command is not None:
            return StdioLink(self.command, watch=watch)
        policy = policy_of("mcp", only_hosts=self.only_hosts)
        return HttpLink(
            self.url, policy=policy, watch=watch, credential=self.credential
        )


def reach_of_tool(
    server_id: int | None, *, tool_id: int | None, hosts: Sequence[str] = ()
) -> Reach:
    """Return the way to a tool's server, if the tool's owner may still use it.

    `hosts` are those of the run; together with the tool's own they only grow fewer.
    """
    with connection_for_a_moment():
        tool = Tool.objects.select_related("owner").filter(pk=tool_id or 0).first()
        if tool is None:
            raise NotReachable("the tool does not exist any more")
        return reach_of(
            server_id, by=tool.owner, only_hosts=fewer_hosts(tool.hosts, hosts)
        )


def reach_of(
    server_id: int | None, *, by: User, only_hosts: Sequence[str] = ()
) -> Reach:
    """Return the way to a server, if `by` may use it; raise `ToolFailed`."""
    server: Any = McpServer.objects.usable_by(by).filter(pk=server_id or 0).first()
    if server is None:
        raise NotReachable("it is gone, or its use is not allowed any more")
    if server.transport == McpServer.Transport.STDIO:
        return Reach(find_command(server.command, settings.MCP_COMMANDS))
    opened = None
    if server.credential_id is not None:
        opened = open_credential_of(server.credential_id, owner=server.owner)
    return Reach(None, server.url, opened, tuple(only_hosts))
