"""Tools for runs that are broken on purpose: each call leaves a line in a ledger."""

import logging
import os
import sys
import time
from pathlib import Path

from tools.registry import tool

LEDGER = "AGENTSITE_TEST_LEDGER"


def write(line: str) -> None:
    """Add a line to the ledger, at once and on disk."""
    with Path(os.environ[LEDGER]).open("a") as ledger:
        ledger.write(f"{line}\n")


@tool(effect="read")
def look(what: str, seconds: float = 0.0) -> str:
    """Read something, slowly if asked to."""
    write(f"look {what}")
    time.sleep(seconds)
    return f"seen {what}"


@tool(effect="side_effect", timeout=30)
def pay(whom: str, seconds: float = 0.0) -> str:
    """Pay somebody, which must never happen twice."""
    write(f"pay {whom}")
    time.sleep(seconds)
    return f"paid {whom}"


@tool(effect="read")
def die(reason: str, seconds: float = 0.0) -> str:
    """Take the whole worker process along, after a while if asked to."""
    write(f"die {reason}")
    time.sleep(seconds)
    os._exit(9)


@tool(effect="read")
def deadlock(once: str) -> str:
    """Take the lock that the worker's own threads need, and keep it; only once."""
    if Path(os.environ[LEDGER]).exists():
        return "open"
    write(f"deadlock {once}")
    from runs.store.claims import worker_state  # noqa: PLC0415  (needs Django set up)

    worker_state.lock.acquire()
    return "locked"


@tool(effect="read", timeout=300)
def shout(megabytes: int) -> str:
    """Print without being asked to, in the worker's own process."""
    for _ in range(megabytes):
        sys.stdout.write("x" * (1 << 20))
    return "hoarse"


@tool(effect="read")
def log(text: str) -> str:
    """Write a line to the log.

    Args:
        text: What to write.
    """
    logging.getLogger(__name__).info(text)
    return "Logged."
