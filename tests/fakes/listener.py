"""A loopback listener that counts who knocks, and can answer with what it is given."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[socket.socket], None]


class Listener:
    """Accepts connections on all loopback addresses of one family."""

    def __init__(self, host: str, answer: Answer | None, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((host, port))
        self.sock.listen(64)
        self.sock.settimeout(0.05)
        self.port: int = self.sock.getsockname()[1]
        self.knocks = 0
        self.heard: list[bytes] = []
        self.is_over = False
        self._answer = answer
        self.wrap: Callable[[socket.socket], socket.socket] = lambda taken: taken

    def serve(self) -> None:
        """Accept until it is over."""
        while not self.is_over:
            try:
                taken, _ = self.sock.accept()
            except TimeoutError:
                continue
            self.knocks += 1
            threading.Thread(target=self._talk, args=(taken,), daemon=True).start()

    def _talk(self, taken: socket.socket) -> None:
        with taken, suppress(OSError), self.wrap(taken) as taken:
            taken.settimeout(10)
            received = taken.recv(65536)
            length = re.search(rb"content-length: (\d{1,4})\r", received, re.IGNORECASE)
            if length and received.endswith(b"\r\n\r\n"):
                received += taken.recv(int(length[1]))
            self.heard.append(received)
            if self._answer is not None:
                self._answer(taken)


@contextmanager
def listener(
    host: str = "127.0.0.1", answer: Answer | None = None, *, port: int = 0
) -> Iterator[Listener]:
    """Listen until the block ends; `answer` gets each connection after its request."""
    found = Listener(host, answer, port)
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.is_over = True
        thread.join(5)
        found.sock.close()


def http(status: str, *headers: str, body: bytes = b"") -> Answer:
    """Return an answer with `status` and `headers`."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    raw = "\r\n".join([*lines, "Connection: close"]).encode() + b"\r\n\r\n" + body

    def send(sock: socket.socket) -> None:
        sock.sendall(raw)

    return send
