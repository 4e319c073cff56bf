"""What a model server can do wrong, by name."""

import asyncio
import functools
import gzip
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from tests.fakes.wire_formats import rendered

if TYPE_CHECKING:
    from tests.fakes.model_server import Exchange

Fault = Callable[["Exchange"], Awaitable[None]]

MESSAGES = {
    400: "The request is not valid.",
    401: "Incorrect API key provided.",
    403: "You do not have access.",
    404: "The model `fake` does not exist.",
    408: "Request timeout.",
    409: "Conflict with another request.",
    413: "Request too large.",
    429: "Rate limit reached.",
    500: "The server had an error.",
    502: "Bad gateway.",
    503: "Service unavailable.",
    504: "Gateway timeout.",
    529: "Overloaded.",
}


def status(number: int, message: str = "", **more: Any) -> Fault:
    """Answer with an error status and an error object."""
    error = {"message": message or MESSAGES[number], "type": "error", **more}

    async def fault(exchange: "Exchange") -> None:
        await exchange.send_json({"error": error}, status=number)

    return fault


def limited(**headers: str) -> Fault:
    """Answer 429 with the headers that say how long to wait."""

    async def fault(exchange: "Exchange") -> None:
        body = {"error": {"message": MESSAGES[429], "type": "rate_limit_error"}}
        await exchange.send_json(body, status=429, **headers)

    return fault


async def limited_until(exchange: "Exchange") -> None:
    """Answer 429 with a date 30 seconds ahead."""
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    await limited(Retry_After=at)(exchange)


def body(raw: bytes, kind: str = "application/json", **headers: str) -> Fault:
    """Answer 200 with these bytes."""

    async def fault(exchange: "Exchange") -> None:
        await exchange.send(raw, kind=kind, **headers)

    return fault


def events(*pieces: bytes) -> Fault:
    """Answer with these events, streamed or not."""

    async def fault(exchange: "Exchange") -> None:
        await exchange.begin_stream()
        for one in pieces:
            await exchange.piece(one)
        await exchange.end_stream()

    return fault


async def echo_headers(exchange: "Exchange") -> None:
    """Refuse with the headers of the request, as a debugging proxy does."""
    text = json.dumps(exchange.request.headers)
    await exchange.send_json({"error": {"message": text}}, status=400)


async def reset(exchange: "Exchange") -> None:
    """End the connection without a word."""
    exchange.reset()


async def close(exchange: "Exchange") -> None:
    """Close the connection without a word."""
    exchange.cut()


async def hang(exchange: "Exchange") -> None:
    """Say nothing for a long time."""
    await asyncio.sleep(60)


async def drip(exchange: "Exchange") -> None:
    """Send one byte every 0.2 seconds."""
    exchange.writer.write(b"HTTP/1.1 200 Fake\r\nContent-Type: application/json\r\n")
    exchange.writer.write(b"Content-Length: 1000\r\n\r\n")
    for _ in range(300):
        exchange.writer.write(b" ")
        await exchange.writer.drain()
        await asyncio.sleep(0.2)


async def cut_in_call(exchange: "Exchange") -> None:
    """Break the stream off in the middle of a tool call."""
    exchange.reply.tool_calls = [
        {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2, "more": "and more"}'}
    ]
    form = rendered(exchange.request.path, exchange.request.body, exchange.reply)
    await exchange.begin_stream(form.stream_kind)
    for piece in form.pieces:
        if b"and more" in piece or b'"more' in piece or b"more" in piece:
            break
        await exchange.piece(piece)
    exchange.cut()


async def end_in_call(exchange: "Exchange") -> None:
    """End the stream properly, but in the middle of a reply."""
    form = rendered(exchange.request.path, exchange.request.body, exchange.reply)
    await exchange.begin_stream(form.stream_kind)
    for piece in form.pieces[:3]:
        await exchange.piece(piece)
    await exchange.end_stream()


async def without_done(exchange: "Exchange") -> None:
    """Leave out the last event."""
    form = rendered(exchange.request.path, exchange.request.body, exchange.reply)
    await exchange.begin_stream(form.stream_kind)
    for piece in form.pieces[:-1]:
        await exchange.piece(piece)
    await exchange.end_stream()


async def fifty_megabytes(exchange: "Exchange") -> None:
    """Send 50 MB of text in one reply."""
    await exchange.begin_stream("application/json")
    await exchange.piece(b'{"choices":[{"message":{"content":"')
    for _ in range(800):
        await exchange.piece(b"x" * 65536)
    await exchange.piece(b'"}}]}')
    await exchange.end_stream()


@functools.cache
def packed() -> bytes:
    """Return 22 MB of text as 100 kB, packed once."""
    return gzip.compress(b'{"choices":[{"message":{"content":"' + b"x" * 22_000_000, 1)


async def bomb(exchange: "Exchange") -> None:
    """Send far more than it looks."""
    await exchange.send(packed(), Content_Encoding="gzip")


async def stalls(exchange: "Exchange") -> None:
    """Send half a stream, then nothing."""
    form = rendered(exchange.request.path, exchange.request.body, exchange.reply)
    await exchange.begin_stream(form.stream_kind)
    for piece in form.pieces[:3]:
        await exchange.piece(piece)
    await asyncio.sleep(60)


def text(**reply: Any) -> Fault:
    """Answer with this reply, in whatever format the path speaks."""

    async def fault(exchange: "Exchange") -> None:
        for name, value in reply.items():
            setattr(exchange.reply, name, value)
        await exchange.answer()

    return fault


def reply_with(value: str) -> bytes:
    """Return a Chat Completions answer with `value`, written as JSON, added."""
    return (
        '{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
        f'{{"role":"assistant","content":"hello","extra":{value}}}}}]}}'
    ).encode()


DEEP = "[" * 100_000 + "]" * 100_000
PAGE = b"<!DOCTYPE html><html><body>Welcome to nginx!</body></html>"
CALL = {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}

FAULTS: dict[str, Fault] = {
    "echo-headers": echo_headers,
    **{str(code): status(code) for code in MESSAGES},
    "429-seconds": limited(Retry_After="7"),
    "429-ms": limited(Retry_After_Ms="250", Retry_After="1"),
    "429-date": limited_until,
    "429-nonsense": limited(Retry_After="soon"),
    "quota": status(429, "You exceeded your current quota.", code="insufficient_quota"),
    "no-credit": status(402, "Insufficient Balance"),
    "too-long": status(
        400,
        "This model's maximum context length is 8192 tokens.",
        code="context_length_exceeded",
    ),
    "400-reasoning": status(400, "property 'reasoning_content' is unsupported"),
    "filtered": status(400, "It was filtered.", code="content_filter"),
    "wrong-path": body(PAGE, "text/html"),
    "404-page": status(404, "Not Found"),
    "reset": reset,
    "close": close,
    "hang": hang,
    "drip": drip,
    "stalls": stalls,
    "cut": cut_in_call,
    "ended": end_in_call,
    "no-done": without_done,
    "html": body(PAGE, "text/html"),
    "html-as-json": body(PAGE),
    "empty": body(b""),
    "no-json": body(b'{"choices": ['),
    "no-object": body(b"[1, 2]"),
    "no-choices": body(b'{"choices": []}'),
    "error-in-200": body(b'{"error": {"message": "Boom.", "type": "server_error"}}'),
    "50mb": fifty_megabytes,
    "bomb": bomb,
    "bad-arguments": text(tool_calls=[{**CALL, "arguments": '{"a": 1, "b'}]),
    "same-ids": text(tool_calls=[CALL, {**CALL, "arguments": "{}"}, CALL]),
    "no-ids": text(tool_calls=[{**CALL, "id": ""}, {**CALL, "id": ""}]),
    "200-calls": text(tool_calls=[{**CALL, "id": f"c{n}"} for n in range(200)]),
    "length": text(content="It ends in the mid", finish_reason="length"),
    "nul": text(content="a\0b", tool_calls=[{**CALL, "arguments": '{"a": "\\u0000"}'}]),
    "surrogate": text(content="a\ud800b"),
    "nan": body(reply_with("[NaN, Infinity, -Infinity]")),
    "long-number": body(reply_with("9" * 5000)),
    "deep": body(reply_with(DEEP)),
    "deep-enough": body(reply_with("[" * 300 + "]" * 300)),
    "deep-error": body(DEEP.encode()),
    "stream-error": events(
        b'data: {"choices":[{"index":0,"delta":{"content":"He"}}]}\n\n',
        b'data: {"error": {"message": "Overloaded.", "type": "overloaded_error"}}\n\n',
    ),
    "stream-no-json": events(b"data: {nope\n\n"),
    "stream-empty": events(),
    "stream-comments": events(b": hello\n\n", b": still here\n\n"),
}
