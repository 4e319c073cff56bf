"""Messages of the Model Context Protocol: JSON-RPC 2.0, read with suspicion."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tools.mcp.errors import NotMcpMessage, ServerError, ServerSentTooMuch
from tools.net.deadline import Deadline

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions with a handshake, newest first; the server chooses one of them."""

STATELESS_VERSION = "2026-07-28"
"""The revision without a handshake: each request says who asks."""

UNSUPPORTED_VERSION = -32022
METHOD_NOT_FOUND = -32601

MAX_BYTES = 10 << 20
"""Bytes of one reply."""

TOOLS_CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"

CLIENT_INFO = {"name": "agentsite", "version": "1"}

Message = dict[str, Any]


Receiver = Callable[[Message], Message | None]
"""Takes what a server sends by itself; returns the answer to a request."""


class Link(Protocol):
    """A way to one server, for several threads at once."""

    where: str
    """What sentences call it."""
    version: str
    """The revision that was agreed on; empty before."""
    receive: Receiver

    def request(self, message: Message, deadline: Deadline) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""

    def notify(self, message: Message, deadline: Deadline) -> None:
        """Send what has no response."""

    def listen(self, deadline: Deadline) -> None:
        """Take in what the server sends between calls."""

    def is_usable(self) -> bool:
        """Whether another call can be made; looks at what an interrupted one left."""

    def close(self) -> None:
        """End in good order, within about a second."""

    def abandon(self) -> None:
        """End at once."""


def build_rpc_request(
    number: int | str, method: str, params: dict[str, Any]
) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def build_rpc_notification(method: str, params: dict[str, Any]) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": params} if params else message


def build_client_metadata() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": STATELESS_VERSION,
        f"{prefix}clientInfo": CLIENT_INFO,
        f"{prefix}clientCapabilities": {},
    }


def parse_rpc_messages(text: bytes, where: str) -> list[Message]:
    """Return the messages of a JSON text; raise `NotMcp`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise NotMcpMessage(where, "it sent something that is not JSON") from None
    found = value if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, dict)]


def is_id(value: Any) -> bool:
    return isinstance(value, int | str)


def is_response_to(message: Message, number: object) -> bool:
    return (
        "method" not in message
        and message.get("id") == number
        and ("result" in message or "error" in message)
    )


def build_server_reply(message: Message) -> Message | None:
    """Return our answer if a server asks us something: pings, and nothing else."""
    number = message.get("id")
    if number is None or "method" not in message:
        return None
    if message["method"] == "ping":
        return {"jsonrpc": "2.0", "id": number, "result": {}}
    error = {"code": METHOD_NOT_FOUND, "message": "This client offers nothing."}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def get_rpc_result(message: Message, where: str) -> dict[str, Any]:
    """Return the result of a response; raise `ServerError` or `NotMcp`."""
    error = message.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        raise ServerError(
            where,
            code if isinstance(code, int) else 0,
            str(error.get("message") or "an error without words"),
            supported=parse_supported_versions(error.get("data")),
        )
    result = message.get("result")
    if not isinstance(result, dict):
        raise NotMcpMessage(where, "its response has no result")
    return result


def parse_supported_versions(value: Any) -> tuple[str, ...]:
    listed = value.get("supported") if isinstance(value, dict) else None
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


class LineSplitter:
    """Cuts bytes into lines, at most `MAX_BYTES` of them before an answer is found."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._rest = bytearray()
        self._seen = 0
        self._total = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that `piece` completes; raise `ServerSentTooMuch`."""
        self._total += len(piece)
        if self._total > MAX_BYTES:
            raise ServerSentTooMuch(self.where, MAX_BYTES)
        self._rest += piece
        while (end := self._rest.find(b"\n", self._seen)) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._seen = 0
            yield line.removesuffix(b"\r")
        self._seen = len(self._rest)

    def start_next_answer(self) -> None:
        """Count anew: something that was awaited has come."""
        self._total = len(self._rest)
