"""A model server that costs next to nothing.

    python -m tests.bench.servers.mock_model PORT

The model `mock-kK-lL` asks for K tool calls, one a reply and L milliseconds late, and
then answers. It keeps no state: how far a run is, is in the messages it is sent. GET
answers when first calls arrived, in seconds of the machine's monotonic clock.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

MODEL = re.compile(rb'"model": ?"mock-k(\d+)-l(\d+)"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
STREAMS = re.compile(rb'"stream": ?true')
DONE = "The sum is known."

arrivals: list[float] = []


class Server(asyncio.Protocol):
    """One connection; requests follow one another on it."""

    def __init__(self) -> None:
        self.got = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, piece: bytes) -> None:
        self.got += piece
        head, end, rest = self.got.partition(b"\r\n\r\n")
        if not end:
            return
        found = LENGTH.search(head)
        length = int(found.group(1)) if found else 0
        if len(rest) < length:
            return
        self.got = rest[length:]
        if head.startswith(b"GET"):
            self.send(whole(json.dumps(arrivals).encode(), b"application/json"))
            arrivals.clear()
        else:
            self.answer(rest[:length])

    def answer(self, body: bytes) -> None:
        """Send the next reply after the model's latency."""
        model = MODEL.search(body)
        most, late = (int(part) for part in model.groups()) if model else (0, 0)
        done = body.count(b'"tool_call_id"')
        if not done:
            arrivals.append(time.monotonic())
        reply = call_message(done) if done < most else {"content": DONE}
        kind = streamed if STREAMS.search(body) else plain
        if late:
            loop = asyncio.get_running_loop()
            loop.call_later(late / 1000, self.send, kind(reply))
        else:
            self.send(kind(reply))

    def send(self, answer: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(answer)


def call_message(number: int) -> dict[str, Any]:
    """Return a message that calls the tool `add`."""
    arguments = f'{{"a": {number}, "b": 1}}'
    function = {"name": "add", "arguments": arguments}
    call: dict[str, Any] = {
        "index": 0,
        "id": f"c{number}",
        "type": "function",
        "function": function,
    }
    return {"content": "Adding up.", "tool_calls": [call]}


def choice_of(reply: dict[str, Any], part: str) -> dict[str, object]:
    """Return the choice that carries the reply."""
    reason = "tool_calls" if "tool_calls" in reply else "stop"
    message = {"role": "assistant", **reply}
    return {"index": 0, part: message, "finish_reason": reason}


def plain(reply: dict[str, Any]) -> bytes:
    """Return the reply as one JSON answer."""
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    shape = {"id": "m", "model": "mock", "usage": usage}
    body = {**shape, "choices": [choice_of(reply, "message")]}
    return whole(json.dumps(body).encode(), b"application/json")


def streamed(reply: dict[str, Any]) -> bytes:
    """Return the reply as server-sent events, one per word of its text."""
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    shape = {"id": "m", "model": "mock", "object": "chat.completion.chunk"}
    words = [{"content": f"{word} "} for word in str(reply["content"]).split()]
    last = {key: value for key, value in reply.items() if key != "content"}
    parts = [{"choices": [delta(word)]} for word in words]
    parts.append({"choices": [choice_of(last, "delta")]})
    parts.append({"choices": [], "usage": usage})
    events = [f"data: {json.dumps({**shape, **part})}\n\n" for part in parts]
    return whole("".join([*events, "data: [DONE]\n\n"]).encode(), b"text/event-stream")


def delta(part: dict[str, Any]) -> dict[str, object]:
    """Return a choice in the middle of a stream."""
    return {"index": 0, "delta": part, "finish_reason": None}


def whole(body: bytes, kind: bytes) -> bytes:
    """Return an HTTP answer."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        kind,
        len(body),
        body,
    )


async def main(port: int) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
