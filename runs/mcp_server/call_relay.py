"""Follow the run of a call: progress while it runs, then its result."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from runs.live.asgi import HEADERS, live_app, send_chunk
from runs.live.deferred import DeferredResponse, Headers, Receive, Send
from runs.live.narration import (
    CallEnded,
    CallStarted,
    DecisionNeeded,
    Narration,
    RunEnded,
    Said,
    describe_step,
)
from runs.live.run_feed import SILENCE, FollowedRun, RunFeed
from runs.live.run_links import build_decision_url, build_run_url
from runs.live.sse import KEEPALIVE_COMMENT
from runs.mcp_server.results import run_result, tool_error
from runs.mcp_server.rpc import RpcRequest
from tools.mcp.wire import PROGRESS

Json = dict[str, Any]
JSON_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


@dataclass(frozen=True)
class RelayedCall:
    """A request, and how the agent wants it answered."""

    request: RpcRequest
    has_schema: bool
    """Whether the answer is an object that was announced."""
    cancels: bool
    """Whether the run is canceled if the client leaves."""


@dataclass(frozen=True)
class CallRelay:
    followed: FollowedRun
    call: RelayedCall

    def respond(self, *, stream: bool) -> DeferredResponse:
        return DeferredResponse(self._send_stream if stream else self._send_whole)

    async def _send_stream(
        self, headers: Headers, receive: Receive, send: Send
    ) -> None:
        feed = RunFeed(live_app, self.followed)
        try:
            await send_start(send, [*headers, *HEADERS])
            async with aclosing(self._messages(feed, receive)) as messages:
                async for message in messages:
                    await send_chunk(send, format_message(message))
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, OSError):
            feed.has_client_left = True
        await self._leave(feed)

    async def _send_whole(self, headers: Headers, receive: Receive, send: Send) -> None:
        feed, last = RunFeed(live_app, self.followed), None
        async with aclosing(self._messages(feed, receive)) as messages:
            async for message in messages:
                last = message or last
        if last is not None:
            body = json.dumps(last, ensure_ascii=False).encode("utf-8", "replace")
            await send_start(send, [*headers, *JSON_HEADERS])
            await send({"type": "http.response.body", "body": body})
        await self._leave(feed)

    async def _messages(
        self, feed: RunFeed, receive: Receive
    ) -> AsyncGenerator[Json | None, None]:
        """Yield progress, and the response last; None after a silence."""
        narration, count = Narration(streams_text=False), 0
        async with aclosing(feed.events(receive)) as events:
            async for event in events:
                if event is SILENCE:
                    yield None
                for said in narration.narrate(event):
                    if isinstance(said, RunEnded):
                        result = run_result(said.run, has_schema=self.call.has_schema)
                        yield self.call.request.result(result)
                        return
                    if text := await self._describe(feed, said):
                        count += 1
                        yield self._progress(count, text)
        if not feed.has_client_left:
            url = build_run_url(self.followed.run_id)
            text = f"The connection ended before the run did. The run continues: {url}"
            yield self.call.request.result(tool_error(text))

    async def _describe(self, feed: RunFeed, said: Said) -> str:
        if self.call.request.progress_token is None:
            return ""
        if isinstance(said, DecisionNeeded):
            pk = said.decision
            if pk is None:
                pk = await feed.find_open_decision(said.step["index"])
            url = build_decision_url(self.followed.run_id, pk)
            return f"Waiting for approval of {said.step['tool']}: {url}"
        if isinstance(said, CallStarted | CallEnded):
            return describe_step(said).strip()
        return ""

    def _progress(self, count: int, text: str) -> Json:
        token = self.call.request.progress_token
        params = {"progressToken": token, "progress": count, "message": text}
        return {"jsonrpc": "2.0", "method": PROGRESS, "params": params}

    async def _leave(self, feed: RunFeed) -> None:
        if feed.has_client_left and self.call.cancels:
            await feed.cancel_run()


def format_message(message: Json | None) -> bytes:
    """Return a message as an event; a comment for None."""
    if message is None:
        return KEEPALIVE_COMMENT
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return f"event: message\ndata: {body}\n\n".encode("utf-8", "replace")


async def send_start(send: Send, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})
