"""One conversation with an MCP server: greeting, its tools, calls."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from pydantic import ValidationError

from tools.errors import DeadlineExceeded, Interrupted, ToolFailed
from tools.mcp.errors import McpFailed, NotMcpMessage, ServerError
from tools.mcp.results import format_progress, parse_call_result
from tools.mcp.wire import (
    CLIENT_INFO,
    PROGRESS,
    STATELESS_VERSION,
    TOOLS_CHANGED,
    UNSUPPORTED_VERSION,
    VERSIONS,
    Link,
    Message,
    build_client_metadata,
    build_rpc_notification,
    build_rpc_request,
    build_server_reply,
    get_rpc_result,
)
from tools.mcp_offer import Offer
from tools.media import MediaResult
from tools.net.deadline import Deadline

MAX_TOOLS = 500
MAX_PAGES = 50
CANCEL_SECONDS = 1.0


class ToolReportedError(McpFailed):
    """The tool itself says that it did not work."""

    def __init__(self, message: str) -> None:
        super().__init__(message or "The tool failed, and did not say why.")


class Session:
    """Asks one server; for several threads at once."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._numbers = count(1)
        self._offers: dict[str, Offer] = {}
        self._on_progress: dict[int, Callable[[str], None]] = {}
        """What receives the progress of each call, by its number."""
        self._listing = threading.Lock()
        self._changes, self._listed_changes = 0, -1
        link.receive = self._receive

    def begin(self, deadline: Deadline) -> None:
        """Greet the server and agree on a revision; raise `ToolFailed`."""
        hello = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": CLIENT_INFO,
        }
        try:
            result = self._request("initialize", hello, deadline)
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
        ready = build_rpc_notification("notifications/initialized", {})
        self.link.notify(ready, deadline)

    def tools(self, deadline: Deadline) -> list[Offer]:
        """Return the tools of the server, at most `MAX_TOOLS`."""
        offers: list[Offer] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            params = {"cursor": cursor} if cursor else {}
            result = self._request("tools/list", params, deadline)
            listed = result.get("tools")
            if not isinstance(listed, list):
                raise NotMcpMessage(self.link.where, "its list of tools is none")
            offers += self._iter_offers(listed)
            cursor = result.get("nextCursor")
            if not cursor or len(offers) >= MAX_TOOLS:
                break
        return offers[:MAX_TOOLS]

    def find_offer(self, name: str, deadline: Deadline) -> Offer | None:
        """Return the tool as the server last listed it.

        The list is fetched at the start, and again when the server says it changed.
        """
        with deadline.hold(self._listing):
            changes = self._changes
            if self._listed_changes != changes:
                listed = self.tools(deadline)
                self._offers = {one.name: one for one in reversed(listed)}
                self._listed_changes = changes
            return self._offers.get(name)

    def call(
        self,
        name: str,
        arguments: dict[str, Any],
        deadline: Deadline,
        on_progress: Callable[[str], None] | None = None,
    ) -> Any:
        """Call a tool and return its value; raise `ToolReportedError` if it failed.

        `on_progress` is called in another thread, and must not wait or raise.
        """
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        number = next(self._numbers)
        if on_progress is not None:
            self._on_progress[number] = on_progress
            params["_meta"] = {"progressToken": number}
        try:
            result = self._request("tools/call", params, deadline, number=number)
        except DeadlineExceeded:
            self._cancel(number)
            raise
        finally:
            self._on_progress.pop(number, None)
        value = parse_call_result(result, self.link.where)
        if result.get("isError") is True:
            message = value.value if isinstance(value, MediaResult) else value
            raise ToolReportedError(
                message if isinstance(message, str) else str(message)
            )
        return value

    def _receive(self, message: Message) -> Message | None:
        method = message.get("method")
        if method == TOOLS_CHANGED:
            self._changes += 1
        elif method == PROGRESS:
            self._report_progress(message.get("params"))
        return build_server_reply(message)

    def _report_progress(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        report = self._on_progress.get(token) if isinstance(token, int) else None
        if report is not None and (line := format_progress(params)):
            report(line)

    def _iter_offers(self, listed: list[Any]) -> Iterator[Offer]:
        for one in listed:
            try:
                yield Offer.model_validate(one)
            except (ValidationError, RecursionError):
                raise NotMcpMessage(
                    self.link.where, "one of its tools has no name or no schema"
                ) from None

    def _request(
        self,
        method: str,
        params: dict[str, Any],
        deadline: Deadline,
        *,
        number: int | None = None,
    ) -> Message:
        if self.link.version == STATELESS_VERSION:
            about = {**params.get("_meta", {}), **build_client_metadata()}
            params = {**params, "_meta": about}
        asked = build_rpc_request(number or next(self._numbers), method, params)
        return get_rpc_result(self.link.request(asked, deadline), self.link.where)

    def _cancel(self, number: int) -> None:
        """Notify the server that nobody waits for the answer to a request."""
        text = {"requestId": number, "reason": "timeout"}
        message = build_rpc_notification("notifications/cancelled", text)
        with suppress(ToolFailed, Interrupted):
            self.link.notify(message, Deadline(seconds=CANCEL_SECONDS))


@contextmanager
def open_mcp_session(link: Link, deadline: Deadline) -> Iterator[Session]:
    """Give a session that has greeted; whatever is raised ends the link at once."""
    try:
        session = Session(link)
        session.begin(deadline)
        yield session
    except BaseException:
        link.abandon()
        raise
    link.close()
