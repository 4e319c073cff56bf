"""Noticing processes and network calls of this process, by Python's audit hooks."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OUT = (
    *("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"),
    *("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec"),
)
"""Events by which something leaves the process."""

_watching = threading.local()


def _hear(event: str, args: tuple[object, ...]) -> None:
    seen = getattr(_watching, "seen", None)
    if seen is not None and event in OUT:
        seen.append(f"{event} {args!r:.200}")


sys.addaudithook(
    _hear
)  # a hook cannot be taken away; outside of `outbreaks` it is deaf


@contextmanager
def outbreaks() -> Iterator[list[str]]:
    """Collect what this thread starts or calls inside."""
    _watching.seen = seen = []
    try:
        yield seen
    finally:
        _watching.seen = None
