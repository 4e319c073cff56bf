"""A model server on loopback that speaks the providers' wire formats, faults included.

`with model_server(script=[...]) as server:` gives `server.base_url`, `.requests`.
A script is a list of replies, used up one a request: a text, or an object with any of
`content`, `tool_calls` [{id, name, arguments}], `reasoning`, `finish_reason`, `fault`,
`seconds` (before it arrives) and `pause` (seconds between streamed pieces). Without a
script the answer is "Hello from the fake."; a function as script is called with each
request and returns the reply. A fault is chosen by the model name
(`fault-429-seconds`), the header `X-Fault`, or the reply's key; `FAULTS` lists them.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.faults import FAULTS, Fault
from tests.fakes.wire_formats import Script, rendered, wire_format_of

Headers = dict[str, str]


@dataclass
class Recorded:
    """One request as it arrived."""

    method: str
    path: str
    headers: Headers
    raw: bytes

    @property
    def body(self) -> Any:
        """The JSON that was sent."""
        return json.loads(self.raw)


@dataclass
class FakeServer:
    """The running server, seen from the test."""

    port: int = 0
    requests: list[Recorded] = field(default_factory=list)
    connections: int = 0
    script: list[Any] | Callable[[Recorded], Any] | None = None
    models: tuple[str, ...] = ("fake-large", "fake-small")

    @property
    def root(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The address a Chat Completions provider is given."""
        return f"{self.root}/v1"

    def next_reply(self, request: Recorded) -> Script:
        """Return the reply of the script to `request`."""
        if self.script is None:
            return Script(content="Hello from the fake.")
        if callable(self.script):
            return Script.of(self.script(request))
        if not self.script:
            return Script(fault="script-over")
        return Script.of(self.script.pop(0))


@dataclass
class Exchange:
    """One request and the way to answer it."""

    server: FakeServer
    request: Recorded
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    reply: Script

    @property
    def streams(self) -> bool:
        """Whether a stream was asked for."""
        with suppress(ValueError, AttributeError):
            asked = self.request.body.get("stream")
            return self.request.path.endswith("/api/chat") if asked is None else asked
        return False

    async def send(
        self,
        body: bytes,
        *,
        status: int = 200,
        kind: str = "application/json",
        **more: str,
    ) -> None:
        """Send a whole answer."""
        lines = [f"HTTP/1.1 {status} Fake", f"Content-Type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self.writer.drain()

    async def send_json(self, value: Any, *, status: int = 200, **more: str) -> None:
        """Send a value as JSON."""
        await self.send(json.dumps(value).encode(), status=status, **more)

    async def begin_stream(self, kind: str = "text/event-stream") -> None:
        """Send the head of a chunked answer."""
        self.writer.write(
            f"HTTP/1.1 200 Fake\r\nContent-Type: {kind}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        await self.writer.drain()

    async def piece(self, raw: bytes) -> None:
        """Send one chunk."""
        self.writer.write(b"%x\r\n%b\r\n" % (len(raw), raw))
        await self.writer.drain()

    async def end_stream(self) -> None:
        """Send the last chunk."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def answer(self) -> None:
        """Send the reply in the wire format of the path."""
        form = rendered(self.request.path, self.request.body, self.reply)
        if self.reply.seconds:
            await asyncio.sleep(self.reply.seconds)
        if not self.streams:
            await self.send(form.whole)
            return
        await self.begin_stream(form.stream_kind)
        for one in form.pieces:
            await self.piece(one)
            if self.reply.pause:
                await asyncio.sleep(self.reply.pause)
        await self.end_stream()

    def cut(self) -> None:
        """End the connection in the middle of whatever it is."""
        self.writer.close()

    def reset(self) -> None:
        """End the connection with a reset."""
        transport: Any = self.writer.transport
        transport.abort()


async def _serve(
    server: FakeServer,
    faults: dict[str, Fault],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    server.connections += 1
    with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
        while True:
            request = await _read_request(reader)
            server.requests.append(request)
            is_call = wire_format_of(request.path) is not None
            reply = server.next_reply(request) if is_call else Script()
            exchange = Exchange(server, request, reader, writer, reply)
            await _answer(exchange, faults)
            if writer.is_closing():
                break
    writer.close()


async def _answer(exchange: Exchange, faults: dict[str, Fault]) -> None:
    name = _fault_of(exchange)
    if name:
        await faults[name](exchange)
    elif exchange.request.method == "GET":
        await _list_models(exchange)
    elif exchange.request.path.endswith("/api/show"):
        info = {"fake.context_length": 4096}
        message = {"capabilities": ["completion", "tools"], "model_info": info}
        await exchange.send_json(message)
    elif wire_format_of(exchange.request.path) is None:
        await exchange.send_json({"error": {"message": "Not found"}}, status=404)
    else:
        await exchange.answer()


def _fault_of(exchange: Exchange) -> str:
    headers, raw = exchange.request.headers, exchange.request.raw
    if exchange.reply.fault:
        return exchange.reply.fault
    if headers.get("x-fault"):
        return headers["x-fault"]
    with suppress(ValueError):
        model = json.loads(raw).get("model", "") if raw else ""
        return model.removeprefix("fault-") if model.startswith("fault-") else ""
    return ""


async def _list_models(exchange: Exchange) -> None:
    path, names = exchange.request.path, exchange.server.models
    if path.endswith("/api/tags"):
        await exchange.send_json({"models": [{"name": name} for name in names]})
    elif path.endswith("/models"):
        data = [{"id": name, "object": "model"} for name in names]
        await exchange.send_json({"object": "list", "data": data})
    else:
        await exchange.send_json({"error": {"message": "Not found"}}, status=404)


async def _read_request(reader: asyncio.StreamReader) -> Recorded:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Recorded(method, path.partition("?")[0], headers, raw)


@contextmanager
def model_server(
    script: Sequence[Any] | Callable[[Recorded], Any] | None = None,
    *,
    faults: dict[str, Fault] | None = None,
    port: int = 0,
) -> Iterator[FakeServer]:
    """Run a fake server in a thread of its own until the block ends.

    Without a `port` it listens on a free one; with the port of an earlier server it
    is that one, started again.
    """
    is_list = script is not None and not callable(script)
    server = FakeServer(script=list(script) if is_list else script)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    table = {"script-over": _script_over, **FAULTS, **(faults or {})}

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(asyncio.CancelledError):  # `_end`; Python 3.11 would log it
            await _serve(server, table, reader, writer)

    async def start() -> asyncio.Server:
        found = await asyncio.start_server(serve, "127.0.0.1", port, limit=2**26)
        server.port = found.sockets[0].getsockname()[1]
        return found

    def run() -> None:
        listening = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        listening.close()
        loop.run_until_complete(_end(writers))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _end(writers: list[asyncio.StreamWriter]) -> None:
    """Reset all connections, and let every task see it."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for writer in writers:
        transport: Any = writer.transport
        transport.abort()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)


async def _script_over(exchange: Exchange) -> None:
    message = "The script has no reply left."
    await exchange.send_json({"error": {"message": message}}, status=400)
