"""CPU of one tool call in a worker: validation, both commits, the call; on SQLite.

    python -m tests.bench.bench_tool_calls [--calls N]

A step is planned by the engine from a model's call, its intent is committed, the tool
is called by the worker's own code, and the outcome is committed. The CPU is that of the
whole process, so that the thread of the call is in it; making the planned row belongs
to the model's reply and is left out. Exits 1 where a call takes more than it may.
"""

import argparse
import os
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
    sys.stdout.write(f"{'CPU of one call, ms':24}{'median':>9}{'mean':>9}{'must':>9}\n")
    for kind, (median, mean) in found.items():
        missed = "" if median <= MUST[kind] else "  MISSED"
        sys.stdout.write(f"{kind:24}{median:9.2f}{mean:9.2f}{MUST[kind]:9g}{missed}\n")
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
    from runs.engine.kinds.kind import Call  # noqa: PLC0415
    from runs.engine.planning import plan_calls  # noqa: PLC0415
    from runs.engine.toolbox import Toolbox  # noqa: PLC0415
    from runs.services.held import Held  # noqa: PLC0415
    from runs.services.redact import Choke  # noqa: PLC0415
    from runs.services.run_tools import ToolRunner  # noqa: PLC0415
    from tests.make import make_agent, make_run, make_step, make_tool  # noqa: PLC0415
    from tools.services import tool_spec_of  # noqa: PLC0415

    tool = make_tool(name="add", kind=kind, config=CONFIGS[kind], args_schema=NUMBERS)
    agent = make_agent(tool.owner, tools=(tool,))
    run = make_run(agent=agent, status="running")
    toolbox = Toolbox([tool_spec_of(tool)])
    hands = ToolRunner(run, Held(run.pk, run.fence), Choke())
    spent = []
    for number in range(calls + 20):
        row = make_step(run, tool="add", tool_input={"a": number, "b": 1},
                        status="planned", started_at=None)  # fmt: skip
        began = time.process_time_ns()
        asked = Call("add", f'{{"a": {number}, "b": 1}}', call_id=f"c{number}")
        steps = plan_calls((asked,), toolbox, start=row.index, log="", used=Counter())
        hands.answer(CallTools(row.round, steps), [row])
        spent.append((time.process_time_ns() - began) / 1e6)
        row.refresh_from_db()
        if (row.status, row.observation) != ("succeeded", str(number + 1)):
            raise SystemExit(f"The call did not work: {row.status} {row.observation}")
    warm = spent[20:]
    return statistics.median(warm), statistics.fmean(warm)


if __name__ == "__main__":
    sys.exit(main())
