"""A real HTTP server on loopback whose answers a test decides."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tools.net.netguard import NetPolicy, parse_private_hosts


@dataclass
class Got:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    target: str = ""
    """Path and query, not decoded."""

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """What the server says."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def raw(self) -> bytes:
        return (
            self.body
            if isinstance(self.body, bytes)
            else json.dumps(self.body).encode()
        )


@dataclass
class Server:
    """A running server."""

    url: str
    got: list[Got]


@contextmanager
def serve(answer: Callable[[Got], Answer]) -> Iterator[Server]:
    """Answer each request with what `answer` returns."""
    got: list[Got] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            one = Got(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(length),
                self.path,
            )
            got.append(one)
            said = answer(one)
            self.send_response(said.status)
            self.send_header("content-type", said.content_type)
            self.send_header("content-length", str(len(said.raw())))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.raw())

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Clients that hang up are what some tests are of."""

    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_address[1]}", got)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def loopback(use: Any = "tool") -> NetPolicy:
    """Return a policy under which loopback can be reached."""
    hosts = parse_private_hosts(f"{use}=127.0.0.1,::1")[use]
    return NetPolicy(use=use, private_hosts=hosts)
