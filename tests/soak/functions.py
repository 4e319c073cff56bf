"""Tools of the soak: each call leaves a line in the ledger before it does anything."""

import time
from hashlib import sha256

from tests.faults.functions import write
from tools.errors import ToolFailed
from tools.registry import tool

LONGEST_SECONDS = 0.6


def work(word: str, call: str) -> str:
    """Leave a line, take a while that only depends on `call`, and say what was done."""
    write(f"{word} {call}")
    dice = sha256(f"{word} {call}".encode()).digest()
    time.sleep(LONGEST_SECONDS * dice[0] / 255)
    if dice[1] < 12:
        raise ToolFailed(f"{word} {call} did not work out.")
    return f"{word} {call} done"


@tool(effect="read")
def look(call: str) -> str:
    """Read something."""
    return work("look", call)


@tool(effect="idempotent")
def put(call: str) -> str:
    """Set something to a value."""
    return work("put", call)


@tool(effect="side_effect", timeout=30)
def pay(call: str) -> str:
    """Pay somebody, which must never happen twice."""
    return work("pay", call)


@tool(effect="side_effect", timeout=30)
def sign(call: str) -> str:
    """Sign something, which needs a yes."""
    return work("sign", call)
