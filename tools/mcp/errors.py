"""What can go wrong between us and an MCP server.

McpFailed                a `ToolFailed`: its sentence is the observation
  ServerGone             the server ended, or the connection did
  ServerRefused          it answered with an HTTP status
    SignInNeeded         it wants a sign-in, or another one
  SessionExpired         it no longer knows the session; nothing was done
  OldTransport           it offers only the transport of 2024
  ServerError            it answered with an error of the protocol
  NotMcpMessage          what it says is not the protocol
  ServerSentTooMuch      it sends more than is taken in
  UnknownCommand         the operator listed no such command
  CommandNotStarted      the command does not start
  MaskedServerError      any of these, with a secret covered
"""

from tools.errors import ToolFailed

MAX_SERVER_TEXT = 400
"""Characters of a server's own words in a sentence."""


class McpFailed(ToolFailed):
    """The server could not be used."""


class ServerGone(McpFailed):
    """The server ended, or the connection did."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"The MCP server {where} is gone: {why}.")


class ServerRefused(McpFailed):
    """The server answered with an HTTP status that is not a success."""

    def __init__(self, where: str, status: int, message: str) -> None:
        self.status = status
        words = f": {shorten_server_text(message)}" if message.strip() else "."
        super().__init__(f"The MCP server {where} answered {status}{words}")


class SignInNeeded(ServerRefused):
    """The server wants a sign-in, or does not allow what was signed in for."""

    def __init__(
        self, where: str, status: int, message: str, *, is_signed_in: bool
    ) -> None:
        super().__init__(where, status, message)
        words = f" It says: {shorten_server_text(message)}" if message.strip() else ""
        if status == 403:
            why = "does not allow this: the account or token lacks a permission"
        elif is_signed_in:
            why = "needs sign-in: it did not accept the token or credential"
        else:
            why = "needs sign-in"
        self.args = (
            f"The MCP server {where} {why}. An administrator can connect it, or select "
            f"another credential, on its page.{words}",
        )


class SessionExpired(McpFailed):
    """The server no longer knows the session; the request was not carried out."""

    def __init__(self, where: str) -> None:
        super().__init__(f"The MCP server {where} ended the session.")


class OldTransport(McpFailed):
    """The server offers only HTTP with server-sent events, as of 2024."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The MCP server {where} uses the old transport HTTP+SSE (2024-11-05), "
            "which is not supported. Enter its streamable HTTP address, which often "
            "ends in /mcp instead of /sse."
        )


class ServerError(McpFailed):
    """The server answered with an error of the protocol."""

    def __init__(
        self, where: str, code: int, message: str, *, supported: tuple[str, ...] = ()
    ) -> None:
        self.code = code
        self.supported = supported
        super().__init__(
            f"The MCP server {where} says: {shorten_server_text(message)} (code {code})"
        )


class NotMcpMessage(McpFailed):
    """What the server says is not the Model Context Protocol."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} does not speak MCP as it should: {why}.")


class ServerSentTooMuch(McpFailed):
    """The server sends more than is taken in."""

    def __init__(self, where: str, limit: int) -> None:
        super().__init__(
            f"The MCP server {where} sent more than {limit >> 20} MB and was ended."
        )


class UnknownCommand(McpFailed):
    """The operator listed no command of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no command {name!r} in AGENTSITE_MCP_COMMANDS, the operator's "
            "list."
        )


class CommandNotStarted(McpFailed):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The command {name!r} does not start: {why}.")


def shorten_server_text(message: str) -> str:
    """Return a server's words in one line, cut if they are long."""
    line = " ".join(message.split())
    return line if len(line) <= MAX_SERVER_TEXT else f"{line[:MAX_SERVER_TEXT]}…"


class MaskedServerError(McpFailed):
    """A sentence of the server in which a secret was covered."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
