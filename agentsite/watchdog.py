"""Ends a process whose threads hang, and shows others that it is alive.

Every few seconds a thread looks for hung parts. If there are any, the process exits
with the stacks of its threads in the log, and whatever runs it starts it again. If not,
it touches the file that `AGENTSITE_ALIVE_FILE` names: a process that is frozen as a
whole cannot end itself, so the supervisor and container health checks look at the file.
Under systemd it notifies the watchdog of the unit.

    python -m agentsite.watchdog    # exit code 1 if the file is too old
"""

import contextlib
import faulthandler
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CHECK_SECONDS = 5.0
HANG_SECONDS = float(os.environ.get("AGENTSITE_HANG_SECONDS") or 60)
ALIVE_FILE = os.environ.get("AGENTSITE_ALIVE_FILE") or ""
NOTIFY_SOCKET = os.environ.get("NOTIFY_SOCKET") or ""

logger = logging.getLogger(__name__)


def start_watchdog(find_hung: Callable[[], Sequence[str]]) -> None:
    """Check this process from a thread until it ends.

    `find_hung` returns the names of parts that make no progress.
    """
    threading.Thread(
        target=_watch, args=(find_hung,), name="watchdog", daemon=True
    ).start()


def _watch(find_hung: Callable[[], Sequence[str]]) -> None:
    was_hung = False
    while True:
        hung = find_hung()
        if hung and was_hung:  # twice, as a process that was paused looks hung too
            logger.critical("%s does not respond, this process exits", ", ".join(hung))
            with contextlib.suppress(Exception):  # the exit must happen in any case
                faulthandler.dump_traceback()
            os._exit(1)
        was_hung = bool(hung)
        if ALIVE_FILE and not hung:
            with contextlib.suppress(OSError):
                Path(ALIVE_FILE).touch()
        if NOTIFY_SOCKET and not hung:
            with contextlib.suppress(OSError):
                notify_systemd(b"WATCHDOG=1")
        time.sleep(CHECK_SECONDS)


def notify_systemd(message: bytes) -> None:
    """Send `message` as `sd_notify` does; for units with `WatchdogSec`."""
    address = NOTIFY_SOCKET.replace("@", "\0", 1)  # an abstract socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.sendto(message, address)


def main() -> int:
    """Return 1 if the process that touches the file has not done so lately."""
    if not ALIVE_FILE:
        return 1
    try:
        age = time.time() - Path(ALIVE_FILE).stat().st_mtime
    except OSError:
        return 1
    return int(age > HANG_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
