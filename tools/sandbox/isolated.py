"""A process of its own for one call: `python -m tools.sandbox.isolated`.

It reads the call from standard input, and writes the outcome to the pipe whose number
is its argument, so that nothing a function prints is taken for it. Before the outcome,
each line is a text of progress, as JSON. This module is imported in both processes;
Django is in neither's way.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

DEFAULT_MEMORY = 2 << 30
"""Bytes of address space."""

DEFAULT_FILE_SIZE = 100 << 20
"""Bytes of one written file."""

PR_SET_PDEATHSIG = 1


def limit_process(
    *,
    seconds: float,
    parent: int,
    memory: int = DEFAULT_MEMORY,
    file_size: int = DEFAULT_FILE_SIZE,
) -> None:
    """Take the limits of a call, and die with the process that asked for it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    cpu = int(seconds) + 1
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file_size),
    ):
        resource.setrlimit(kind, (most, most))


def main() -> None:
    out = int(sys.argv[1])
    asked = json.load(sys.stdin)
    limit_process(seconds=asked["seconds"], parent=asked["parent"])
    sys.path[:] = asked["path"]
    lock = threading.Lock()
    with os.fdopen(out, "wb") as pipe:

        def send_progress(text: str) -> None:
            with lock:
                pipe.write(json.dumps(text).encode() + b"\n")
                pipe.flush()

        answer = json.dumps(build_isolated_outcome(asked, send_progress)).encode()
        sys.stdout.flush()
        sys.stderr.flush()
        lock.acquire()  # threads a function has started end with its call
        pipe.write(answer)
    os._exit(0)


def build_isolated_outcome(
    asked: dict[str, Any], send_progress: Callable[[str], None]
) -> dict[str, Any]:
    """Return `{"value": …}` or `{"error": sentence}`."""
    # Only after the limits: importing runs foreign code.
    from tools.sandbox.isolated_call import make_isolated_call  # noqa: PLC0415

    return make_isolated_call(asked, send_progress)


if __name__ == "__main__":
    main()
