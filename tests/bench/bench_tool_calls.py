"""CPU of one tool call in a worker: validation, both commits, the call; on SQLite.

    python -m tests.bench.bench_tool_calls [--calls N]

A step is planned by the engine from a model's call, its intent is committed, the tool
is called by the worker's own code, and the outcome is committed. The CPU is that of the
whole process, so that the thread of the call is in it; making the planned row belongs
to the model's reply and is left out. The column `by hand` is the same two commits with
Python's own `sqlite3`, so that one machine can be told from another. Exits 1 where a
call takes more than it may.
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from typing import Any

MUST = {"function": 1.5, "python": 3.0}
"""Milliseconds of CPU."""

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
CONFIGS: dict[str, dict[str, Any]] = {
    "function": {"function": "tests.bench.functions:add"},
    "python": {"code": "a + b"},
}


def main() -> int:
    """Measure each kind and print it beside what it may take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=300)
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        found = {kind: measured(kind, calls) for kind in MUST}
        floor = by_hand(folder, calls)
    head = f"{'median':>9}{'mean':>9}{'must':>9}{'by hand':>9}"
    sys.stdout.write(f"{'CPU of one call, ms':24}{head}\n")
    for kind, (median, mean) in found.items():
        figures = f"{median:9.2f}{mean:9.2f}{MUST[kind]:9g}{floor:9.2f}"
        missed = "" if median <= MUST[kind] else "  MISSED"
        sys.stdout.write(f"{kind:24}{figures}{missed}\n")
    return int(any(found[kind][0] > must for kind, must in MUST.items()))


def set_up(folder: str) -> None:
    """Make a fresh SQLite database as the product has it."""
    os.environ |= {
        "AGENTSITE_DATA": folder,
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "agentsite.settings",
        "AGENTSITE_TOOL_MODULES": "tests.bench.functions",
        "AGENTSITE_LOG_LEVEL": "ERROR",
    }
    import django  # noqa: PLC0415  # after the variables
    from django.core.management import call_command  # noqa: PLC0415

    django.setup()
    call_command("migrate", verbosity=0)


def measured(kind: str, calls: int) -> tuple[float, float]:
    """Return median and mean of the CPU milliseconds of one call."""
    # These need Django to be set up.
    from runs.engine.effects import CallTools  # noqa: PLC0415
    from runs.engine.kinds.kind import ParsedCall  # noqa: PLC0415
    from runs.engine.planning import plan_calls  # noqa: PLC0415
    from runs.engine.toolbox import Toolbox  # noqa: PLC0415
    from runs.engine.types import ModelSettings  # noqa: PLC0415
    from runs.store.claims import ClaimedRun  # noqa: PLC0415
    from runs.store.sanitizer import Sanitizer  # noqa: PLC0415
    from runs.worker.run_tools import ToolRunner  # noqa: PLC0415
    from tests.make import make_agent, make_run, make_step, make_tool  # noqa: PLC0415
    from tools.definition.freeze import freeze_tool  # noqa: PLC0415
    from tools.mcp_servers.sessions import McpSessions  # noqa: PLC0415

    tool = make_tool(name="add", kind=kind, config=CONFIGS[kind], args_schema=NUMBERS)
    agent = make_agent(tool.owner, tools=(tool,))
    run = make_run(agent=agent, status="running")
    toolbox = Toolbox([freeze_tool(tool)])
    claim = ClaimedRun(run.pk, run.fence)
    hands = ToolRunner(run, claim, Sanitizer(), McpSessions(), ModelSettings())
    spent = []
    for number in range(calls + 20):
        row = make_step(run, tool="add", tool_input={"a": number, "b": 1},
                        status="planned", started_at=None)  # fmt: skip
        began = time.process_time_ns()
        asked = ParsedCall("add", f'{{"a": {number}, "b": 1}}', call_id=f"c{number}")
        steps = plan_calls((asked,), toolbox, start=row.index, log="", used=Counter())
        hands.run_calls(CallTools(row.round, steps), [row])
        spent.append((time.process_time_ns() - began) / 1e6)
        row.refresh_from_db()
        if (row.status, row.observation) != ("succeeded", str(number + 1)):
            raise SystemExit(f"The call did not work: {row.status} {row.observation}")
    warm = spent[20:]
    return statistics.median(warm), statistics.fmean(warm)


def by_hand(folder: str, calls: int) -> float:
    """Return the median CPU milliseconds of the two commits without all else."""
    from agentsite.database import SQLITE_PRAGMAS  # noqa: PLC0415

    file = sqlite3.connect(os.path.join(folder, "by-hand.sqlite3"))
    file.isolation_level = None
    file.executescript(SQLITE_PRAGMAS)
    file.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, seq INTEGER)")
    file.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, status TEXT, text TEXT)")
    file.execute("INSERT INTO run VALUES (1, 0)")
    spent = []
    for number in range(calls):
        file.execute("INSERT INTO step VALUES (?, 'planned', '')", [number])
        began = time.process_time_ns()
        for status in ("started", "succeeded"):
            file.execute("BEGIN IMMEDIATE")
            file.execute("UPDATE run SET seq = seq + 1 WHERE id = 1 RETURNING seq")
            change = "UPDATE step SET status = ?, text = ? WHERE id = ?"
            file.execute(change, [status, str(number), number])
            file.execute("COMMIT")
        spent.append((time.process_time_ns() - began) / 1e6)
    file.close()
    return statistics.median(spent)


if __name__ == "__main__":
    sys.exit(main())
