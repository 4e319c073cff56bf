"""Looking whether the sandbox for CPython holds on this machine, before it is used.

The probe runs code in the sandbox that tries to get at what a tool must not have; some
of it is really there to be got at: a listener, a file, this process.
"""

import os
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.errors import Interrupted, ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox.cpython import run_cpython
from tools.text.translatable import translatable

PROBE_SECONDS = 20.0
PROBE_MEMORY = 32 << 20
REPROBE_SECONDS = 60.0
"""After which a sandbox that did not hold is looked at again."""

PROBE_CODE = """
import os, socket

failures = []

def must_fail(what, act):
    try:
        act()
    except (OSError, MemoryError):
        return
    if what not in failures:
        failures.append(what)

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)

def write(path):
    with open(path, "w") as file:
        file.write("x")

def fork():
    if os.fork() == 0:
        os._exit(0)

must_fail("reaches the network", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
must_fail("reaches sockets of this machine", lambda: connect(socket.AF_UNIX, name))
for path in (file, "/etc/passwd", "/etc/hostname"):
    must_fail("reads files of this machine", lambda: open(path).read())
for path in (folder, "/proc", "/sys", "/home", "/root", "/tmp", "/var", "/etc"):
    must_fail("sees " + path, lambda: os.listdir(path))
must_fail("reaches other processes", lambda: os.kill(pid, 0))
must_fail("starts processes", fork)
must_fail("starts programs", lambda: os.execv(program, [program]))
must_fail("takes more memory than it may", lambda: bytearray(memory * 2))
for path in (file, "/x", "/tmp/x", "/dev/x", "/dev/shm/x", "/usr/lib/x"):
    must_fail("writes files", lambda: write(path))
if os.getuid() == 0:
    failures.append("is root")
if set(os.environ) - {"LANG", "LD_LIBRARY_PATH", "PWD", "LC_CTYPE"}:
    failures.append("sees our variables")
failures
"""

_probe_lock = threading.Lock()
_probe_results: dict[int, tuple[float, str]] = {}
"""By process: when it was looked, and what was found."""


def find_sandbox_flaw() -> str:
    """Return why CPython cannot be used here, as a sentence; empty if it can."""
    with _probe_lock:
        known = _probe_results.get(os.getpid())
        if known is None or (
            known[1] and time.monotonic() - known[0] > REPROBE_SECONDS
        ):
            known = _probe_results[os.getpid()] = (time.monotonic(), probe_sandbox())
        return known[1]


def probe_sandbox() -> str:
    """Run the probe once and return what is wrong; nothing is kept."""
    if sys.platform != "linux":
        return translatable("CPython cannot be used here: its sandbox needs Linux.")
    try:
        failures = run_probe_code()
    except (ToolFailed, Interrupted, OSError) as error:
        return translatable(
            "CPython cannot be used here, its sandbox does not start: %(error)s",
            error=error,
        )
    if failures == []:
        return ""
    message = ", it ".join(map(str, failures)) if isinstance(failures, list) else "lies"
    return translatable(
        "CPython cannot be used here, its sandbox does not hold: it %(failures)s.",
        failures=message,
    )


def run_probe_code() -> Any:
    """Return what the code in the sandbox could do and should not."""
    with ExitStack() as stack:
        network = stack.enter_context(socket.socket())
        network.bind(("127.0.0.1", 0))
        network.listen()
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        name = f"\0agentsite-probe-{os.getpid()}-{id(local)}"
        local.bind(name)
        local.listen()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        file = Path(folder) / "file"
        file.write_text("to be got at")
        inputs = {
            "port": network.getsockname()[1],
            "name": name,
            "folder": folder,
            "file": str(file),
            "pid": os.getpid(),
            "program": sys.executable,
            "memory": PROBE_MEMORY,
        }
        deadline = Deadline(seconds=PROBE_SECONDS)
        return run_cpython(PROBE_CODE, inputs, deadline=deadline, memory=PROBE_MEMORY)
