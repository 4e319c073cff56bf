"""Tools for runs that are broken on purpose: each call leaves a line in a ledger."""

import logging
import os
import sys
import time
from pathlib import Path

from tools.registry import ToolContext, tool

LEDGER = "AGENTSITE_TEST_LEDGER"


def write(line: str) -> None:
    """Add a line to the ledger, at once and on disk."""
    with Path(os.environ[LEDGER]).open("a") as ledger:
        ledger.write(f"{line}\n")


def work(seconds: float, until: str) -> None:
    """Take some seconds, or until there is a file of that name beside the ledger."""
    time.sleep(seconds)
    while until and not Path(os.environ[LEDGER]).with_name(until).exists():
        time.sleep(0.02)


@tool(effect="read", timeout=600)
def look(what: str, seconds: float = 0.0, until: str = "") -> str:
    """Read something, slowly if asked to."""
    write(f"look {what}")
    work(seconds, until)
    return f"seen {what}"


@tool(effect="side_effect", timeout=300)
def pay(whom: str, seconds: float = 0.0, until: str = "") -> str:
    """Pay somebody, which must never happen twice."""
    write(f"pay {whom}")
    work(seconds, until)
    return f"paid {whom}"


@tool(effect="read")
def die(reason: str, context: ToolContext) -> str:
    """Take the whole worker process along, soon after this call was stored."""
    write(f"die {reason}")
    from runs.models import AgentStep  # noqa: PLC0415  (needs Django set up)

    while not AgentStep.objects.filter(run=context.run_id).exists():
        time.sleep(0.01)
    time.sleep(0.5)
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
