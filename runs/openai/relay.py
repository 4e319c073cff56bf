"""Send the answer of a run to the client that waits for it."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from runs.live.asgi import HEADERS, live_app, send_chunk, send_start
from runs.live.deferred import DeferredResponse, Headers, Receive, Send
from runs.live.narration import DecisionNeeded, Narration, RunEnded, Said
from runs.live.run_feed import SILENCE, FollowedRun, RunFeed
from runs.live.run_links import build_decision_url, build_run_url
from runs.live.sse import KEEPALIVE_COMMENT
from runs.openai.errors import OpenAiError
from runs.openai.outcomes import find_run_error

Json = dict[str, Any]
JSON_TYPE = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")


class AnswerFormat(Protocol):
    """How an answer is written: Chat Completions or Responses."""

    def begin(self) -> Iterator[bytes]: ...

    def render(self, said: Said, url: str = "") -> Iterator[bytes]: ...

    def interrupt(self, message: str) -> Iterator[bytes]: ...

    def build_whole(self, said: list[Said], run: Json) -> Json: ...


class _Chunk(NamedTuple):
    """A piece of a stream, and whether the run is over."""

    content: bytes
    is_last: bool = False


@dataclass(frozen=True)
class Relay:
    """A run, and how its client is answered."""

    followed: FollowedRun
    answer: AnswerFormat
    streams_text: bool
    cancels: bool = True
    """Whether the run is canceled if the client leaves."""

    def respond(self, *, stream: bool) -> DeferredResponse:
        return DeferredResponse(self._send_stream if stream else self._send_whole)

    async def _send_stream(
        self, headers: Headers, receive: Receive, send: Send
    ) -> None:
        feed, has_ended = RunFeed(live_app, self.followed), False
        try:
            await send_start(send, 200, [*headers, *HEADERS])
            async with aclosing(self._stream_chunks(feed, receive)) as chunks:
                async for chunk in chunks:
                    has_ended = has_ended or chunk.is_last
                    await send_chunk(send, chunk.content)
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, OSError):
            feed.has_client_left = True
        await self._leave(feed, has_ended=has_ended)

    async def _stream_chunks(
        self, feed: RunFeed, receive: Receive
    ) -> AsyncGenerator[_Chunk, None]:
        """Yield what to send up to the end of the run, or to an interruption."""
        for content in self.answer.begin():
            yield _Chunk(content)
        narration = Narration(streams_text=self.streams_text)
        async with aclosing(feed.events(receive)) as events:
            async for event in events:
                if event is SILENCE:
                    yield _Chunk(KEEPALIVE_COMMENT)
                for said in narration.narrate(event):
                    url = await self._url(feed, said)
                    for content in self.answer.render(said, url):
                        yield _Chunk(content, isinstance(said, RunEnded))
                    if isinstance(said, RunEnded):
                        return
        if not feed.has_client_left:
            for content in self.answer.interrupt(self._interruption):
                yield _Chunk(content)

    async def _send_whole(self, headers: Headers, receive: Receive, send: Send) -> None:
        feed, said = RunFeed(live_app, self.followed), list[Said]()
        narration = Narration(streams_text=self.streams_text)
        async with aclosing(feed.events(receive)) as events:
            async for event in events:
                said += narration.narrate(event)
        ended = said[-1] if said else None
        if isinstance(ended, RunEnded):
            await self._send_ended(ended.run, said, headers, send)
        elif not feed.has_client_left:
            error = OpenAiError(self._interruption, code="interrupted", status=503)
            await send_error(send, error, headers)
        await self._leave(feed, has_ended=isinstance(ended, RunEnded))

    async def _send_ended(
        self, run: Json, said: list[Said], headers: Headers, send: Send
    ) -> None:
        error = find_run_error(run)
        if error is not None:
            await send_error(send, error, headers)
            return
        await send_json(send, 200, self.answer.build_whole(said, run), headers)

    async def _leave(self, feed: RunFeed, *, has_ended: bool) -> None:
        if feed.has_client_left and self.cancels and not has_ended:
            await feed.cancel_run()

    async def _url(self, feed: RunFeed, said: Said) -> str:
        if not isinstance(said, DecisionNeeded):
            return ""
        decision = said.decision
        if decision is None:
            decision = await feed.find_open_decision(said.step["index"])
        return build_decision_url(self.followed.run_id, decision)

    @property
    def _interruption(self) -> str:
        url = build_run_url(self.followed.run_id)
        return f"The connection ended before the run did. The run continues: {url}"


async def send_error(send: Send, error: OpenAiError, headers: Headers) -> None:
    extra = [(k.lower().encode(), v.encode()) for k, v in error.headers.items()]
    await send_json(send, error.status, error.body, [*headers, *extra])


async def send_json(send: Send, status: int, shape: Json, headers: Headers) -> None:
    body = json.dumps(shape, ensure_ascii=False).encode("utf-8", "replace")
    length = (b"content-length", str(len(body)).encode())
    await send_start(send, status, [*headers, JSON_TYPE, NO_STORE, length])
    await send({"type": "http.response.body", "body": body})
