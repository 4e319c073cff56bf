"""A name server on loopback whose answers change, and a resolver that asks it."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address


class NameServer:
    """Answers A and AAAA questions over UDP; each answer of a name is given once."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self.answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(0.1)
        self.is_over = False

    def serve(self) -> None:
        """Answer until it is over."""
        while not self.is_over:
            try:
                query, sender = self.sock.recvfrom(512)
            except TimeoutError:
                continue
            self.sock.sendto(self._answer(query), sender)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name = ".".join(labels)
        self.asked.append(name)
        left = self.answers.get(name, [[]])
        addresses = left.pop(0) if len(left) > 1 else left[0]
        records = b""
        for text in addresses:
            packed = ip_address(text).packed
            kind = 1 if len(packed) == 4 else 28
            records += struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed
        head = struct.pack(
            "!HHHHHH", *struct.unpack("!H", query[:2]), 0x8180, 1, len(addresses), 0, 0
        )
        return head + query[12 : at + 5] + records

    def resolve(self, host: str, port: int) -> list[str]:
        """Return what this server says about `host`, over a real exchange."""
        question = b"".join(bytes([len(one)]) + one.encode() for one in host.split("."))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(2)
            query = struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + question
            sock.sendto(query + b"\0\0\1\0\1", self.sock.getsockname())
            answer = sock.recv(2048)
        count = struct.unpack("!H", answer[6:8])[0]
        at, found = 12 + len(question) + 5, []
        for _ in range(count):
            length = struct.unpack("!H", answer[at + 10 : at + 12])[0]
            found.append(str(ip_address(answer[at + 12 : at + 12 + length])))
            at += 12 + length
        if not found:
            raise OSError(f"{host} is not known")
        return found


@contextmanager
def name_server(answers: dict[str, list[list[str]]]) -> Iterator[NameServer]:
    """Run a name server until the block ends; the last answer of a name stays."""
    server = NameServer(answers)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_over = True
        thread.join(5)
        server.sock.close()
