"""Places between the commits of a tool call at which a worker's threads stand still.

A worker that names this module among its tool modules, and a plan in the variable PLAN,
stops the thread of each run of the plan at the run's own place, for ever, and says so
in a file. When all stand still, the test kills the whole process: every run has then
died exactly there. No transaction is open at any of the places.
"""

import json
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery.signals import worker_init

from tools.registry import ToolContext, tool

PLAN = "AGENTSITE_TEST_KILL_PLAN"
"""A file `{run id: place, "outside": address}`.

Beside it is `.reached`, with a line for each run that stands still.
"""


def plan() -> dict[str, str]:
    """Return the place of each run."""
    found: dict[str, str] = json.loads(Path(os.environ[PLAN]).read_text())
    return found


def stand_still(run_id: int | None, place: str) -> None:
    """Say that the run is here, and never return; where it may pass, do."""
    if plan().get(str(run_id)) != place:
        return
    with Path(f"{os.environ[PLAN]}.reached").open("a") as reached:
        reached.write(f"{run_id}\n")
    threading.Event().wait()


def around(function: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
    """Return `function` with a place before and one after it."""

    def passing(*args: Any, **more: Any) -> Any:
        run_id = more["run_id"] if "run_id" in more else args[0].run_id
        stand_still(run_id, before)
        result = function(*args, **more)
        stand_still(run_id, after)
        return result

    return passing


def with_steps(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `commit_start` with its place, where it has anything to commit."""

    def passing(claim: Any, steps: Any) -> Any:
        if steps:
            stand_still(claim.run_id, "before-start")
        return function(claim, steps)

    return passing


def set_places(**_: object) -> None:
    """Put the places into the worker's own functions."""
    from runs.worker import run_tools  # noqa: PLC0415  Django is set up

    run_tools.commit_reply = around(
        run_tools.commit_reply, "before-reply", "after-reply"
    )
    call_every_function_quick()
    run_tools.commit_start = with_steps(run_tools.commit_start)
    run_tools.call_tool = around(run_tools.call_tool, "before-call", "after-call")
    run_tools.commit_outcome = around(
        run_tools.commit_outcome, "before-outcome", "after-outcome"
    )


def call_every_function_quick() -> None:
    """Let no call of a function count as slow, however long it takes."""
    from tools.sandbox import abandoned_calls  # noqa: PLC0415  Django is set up

    abandoned_calls.QUICK_SECONDS = 3600.0


@tool(effect="read", timeout=600)
def look_outside(what: str, context: ToolContext) -> Any:
    """Ask the server outside, as a tool of kind HTTP does."""
    plan = json.loads(Path(os.environ[PLAN]).read_text())
    request = urllib.request.Request(
        f"{plan['outside']}?what={urllib.parse.quote(what)}",
        headers={"Idempotency-Key": context.idempotency_key},
    )
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


if PLAN in os.environ:
    worker_init.connect(set_places, weak=False)
