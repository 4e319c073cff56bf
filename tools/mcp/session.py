"""One conversation with an MCP server: greeting, its tools, calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pydantic import ValidationError

from tools.mcp.errors import McpFailed, NotMcpMessage, ServerError, ServerSentTooMuch
from tools.mcp.wire import (
    CLIENT_INFO,
    MAX_BYTES,
    STATELESS_VERSION,
    UNSUPPORTED_VERSION,
    VERSIONS,
    Link,
    Message,
    build_client_metadata,
    build_rpc_request,
    get_rpc_result,
)
from tools.mcp_offer import Offer

MAX_TOOLS = 500
MAX_PAGES = 50


class ClosableLink(Link, Protocol):
    """A link that ends with its session."""

    def close(self) -> None:
        """End in good order."""

    def abandon(self) -> None:
        """End at once."""


class ToolReportedError(McpFailed):
    """The tool itself says that it did not work."""

    def __init__(self, told: str) -> None:
        super().__init__(told or "The tool failed, and did not say why.")


class Session:
    """Asks one server; for one thread."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._number = 0

    def begin(self) -> None:
        """Greet the server and agree on a revision; raise `ToolFailed`."""
        hello = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": CLIENT_INFO,
        }
        try:
            result = self._request("initialize", hello)
        except ServerError as error:
            if (
                error.code == UNSUPPORTED_VERSION
                and STATELESS_VERSION in error.supported
            ):
                self.link.version = STATELESS_VERSION
                return
            raise
        version = str(result.get("protocolVersion"))
        if version not in VERSIONS:
            raise NotMcpMessage(
                self.link.where, f"it chose the unknown revision {version!r}"
            )
        self.link.version = version
        self.link.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> list[Offer]:
        """Return the tools of the server, at most `MAX_TOOLS`."""
        offers: list[Offer] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            result = self._request("tools/list", {"cursor": cursor} if cursor else {})
            listed = result.get("tools")
            if not isinstance(listed, list):
                raise NotMcpMessage(self.link.where, "its list of tools is none")
            offers += self._iter_offers(listed)
            cursor = result.get("nextCursor")
            if not cursor or len(offers) >= MAX_TOOLS:
                break
        return offers[:MAX_TOOLS]

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and return its value; raise `Refused` where it says it failed."""
        params = {"name": name, "arguments": arguments}
        result = self._request("tools/call", params)
        value = parse_call_result(result, self.link.where)
        if result.get("isError") is True:
            raise ToolReportedError(value if isinstance(value, str) else str(value))
        return value

    def _iter_offers(self, listed: list[Any]) -> Iterator[Offer]:
        for one in listed:
            try:
                yield Offer.model_validate(one)
            except (ValidationError, RecursionError):
                raise NotMcpMessage(
                    self.link.where, "one of its tools has no name or no schema"
                ) from None

    def _request(self, method: str, params: dict[str, Any]) -> Message:
        self._number += 1
        if self.link.version == STATELESS_VERSION:
            params = {**params, "_meta": build_client_metadata()}
        asked = build_rpc_request(self._number, method, params)
        return get_rpc_result(self.link.request(asked), self.link.where)


@contextmanager
def open_mcp_session(link: ClosableLink) -> Iterator[Session]:
    """Give a session that has greeted; whatever is raised ends the link at once."""
    try:
        session = Session(link)
        session.begin()
        yield session
    except BaseException:
        link.abandon()
        raise
    link.close()


def parse_call_result(result: dict[str, Any], where: str) -> Any:
    """Return what a model reads of a result: its texts, or else its structure."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    texts = [text for part in parts if (text := format_content_part(part))]
    if sum(map(len, texts)) > MAX_BYTES:
        raise ServerSentTooMuch(where, MAX_BYTES)
    structure = result.get("structuredContent")
    if texts or structure is None:
        return "\n".join(texts)
    return structure


def format_content_part(part: Any) -> str:
    """Return one part of a result as text; what is no text is named."""
    if not isinstance(part, dict):
        return ""
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "resource_link":
        return f"[{part.get('name', 'a resource')}: {part.get('uri', '')}]"
    if kind == "resource" and isinstance(part.get("resource"), dict):
        inner = part["resource"]
        return str(inner["text"]) if "text" in inner else f"[{inner.get('uri', '')}]"
    size = len(str(part.get("data", ""))) * 3 // 4
    return f"[{part.get('mimeType', kind)}, {size} bytes, not shown]"
