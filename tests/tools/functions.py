"""Functions registered for the tests of the kind `function`."""

import asyncio
import os
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from tools.errors import ToolFailed
from tools.registry import ToolContext, tool

gate = threading.Event()


@dataclass
class Point:
    x: int
    y: int


@tool
def add(a: int, b: int) -> int:
    """Return the sum."""
    return a + b


@tool(effect="read")
def count_bytes(data: bytes, name: str = "file") -> str:
    """Count the bytes of a file."""
    return f"{name}: {len(data)} bytes, the first is {data[:1].hex()}"


@tool(effect="read", isolated=True)
def count_isolated(data: bytes) -> int:
    """Count the bytes of a file in a process of its own."""
    return len(data)


@tool
def repeat(word: str, times: int = 2) -> str:
    """Return the word several times."""
    return word * times


@tool
def weekday(day: date) -> int:
    """Return the number of the weekday."""
    return day.weekday()


@tool
def returns(what: str) -> Any:
    """Return something that is no plain JSON."""
    return {
        "dataclass": Point(1, 2),
        "date": date(2026, 1, 2),
        "decimal": Decimal("1.50"),
        "set": {3},
        "object": object(),
        "nan": float("nan"),
        "bytes": b"\xff",
        "surrogate": "\ud800",
        "none": None,
    }[what]


@tool
def returns_itself() -> list[Any]:
    """Return a list that holds itself."""
    circle: list[Any] = []
    circle.append(circle)
    return circle


@tool
def waits(seconds: float) -> str:
    """Wait without looking at anything."""
    gate.wait(seconds)
    return "done"


@tool
def raises(what: str) -> None:
    """Raise an exception."""
    raise {
        "value": ValueError("the order is unknown"),
        "empty": KeyError(),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "told": ToolFailed("The shop is closed."),
    }[what]


@tool
def recurses() -> int:
    """Call itself for ever."""
    return 1 + recurses()


@tool
def tells_context(word: str, context: ToolContext) -> dict[str, Any]:
    """Return what it was told of the call."""
    left = context.deadline.remaining()
    return {
        "word": word,
        "key": context.idempotency_key,
        "run": context.run_id,
        "left": left is not None and 0 < left <= 60,
    }


@tool(effect="read", keeps_hosts=True)
def tells_hosts(context: ToolContext) -> list[str]:
    """Return the hosts it may reach."""
    return list(context.hosts)


def use_secret(how: str, context: ToolContext) -> dict[str, Any]:
    """Say the secret in one of the ways out of a function."""
    context.report_progress(f"asks as {context.user} with {context.secret}")
    if how == "raise":
        raise ValueError(f"refused {context.secret}")
    if how == "fail":
        raise ToolFailed(f"refused {context.secret}")
    return {
        context.secret: [f"Bearer {context.secret}"],
        "hosts": list(context.hosts),
        "user": context.user and context.user.username,
        "context": repr(context),
    }


@tool(effect="read", keeps_hosts=True)
def uses_secret(how: str, context: ToolContext) -> dict[str, Any]:
    """Use the secret in a thread."""
    return use_secret(how, context)


@tool(effect="read", keeps_hosts=True, isolated=True, timeout=20)
def isolated_uses_secret(how: str, context: ToolContext) -> dict[str, Any]:
    """Use the secret in a process."""
    return use_secret(how, context)


@tool(effect="read")
def asks_for_a_secret(context: ToolContext) -> str:
    """Use a secret, and reach any host."""
    return context.secret


@tool(effect="read", isolated=True, timeout=20)
def isolated_progress(context: ToolContext) -> str:
    """Report progress from several threads."""
    work = [
        threading.Thread(target=context.report_progress, args=(f"{n}\n" * 20_000,))
        for n in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return "x" * 200_000


@tool(effect="read")
def half_a_character() -> str:
    """Return what UTF-8 cannot carry."""
    return "a\ud800b"


@tool
async def asynchronous(a: int) -> int:
    """Return the double."""
    return a * 2


@tool
async def asynchronous_wait(seconds: float) -> str:
    """Wait without keeping a thread busy."""
    await asyncio.sleep(seconds)
    return "done"


@tool(isolated=True, timeout=20)
def isolated_add(a: int, b: int) -> int:
    """Return the sum, from a process of its own."""
    return a + b


@tool(isolated=True, timeout=20)
def isolated_raises() -> None:
    """Raise."""
    raise ValueError("bad")


@tool(isolated=True, timeout=20)
def isolated_exits() -> None:
    """End the process without a word."""
    os._exit(3)


@tool(isolated=True, timeout=60)
def isolated_prints() -> None:
    """Print 1 GB."""
    for _ in range(1024):
        sys.stdout.write("x" * 1024 * 1024)


@tool(isolated=True, timeout=20)
def isolated_eats_memory() -> int:
    """Take 8 GB."""
    return len(bytearray(8 << 30))


@tool(isolated=True, timeout=20)
def isolated_sleeps() -> None:
    """Sleep."""
    time.sleep(60)


@tool(isolated=True, timeout=60)
def isolated_lets_go() -> None:
    """Close every pipe and stay."""
    os.closerange(0, 100)
    time.sleep(600)


@tool(isolated=True, timeout=20, variables=("SHOP_API_KEY", "NOT_SET"))
def isolated_tells_variables() -> list[str]:
    """Return the names of the environment variables that it sees."""
    return list(os.environ)


@tool(isolated=True, timeout=20)
def isolated_pid() -> int:
    """Return the number of its process."""
    return os.getpid()
