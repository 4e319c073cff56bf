"""CPU per step of the engine alone: tool-calling, no I/O, at round 5 and at round 200.

    python -m tests.bench.bench_engine [--runs N]

The driver builds each request and its digest, as a worker does, and answers at once.
Exits with 1 when a step at round 5 takes 0.15 ms or more, or one at round 200 more than
1.3 times that.
"""

import argparse
import statistics
import sys
import time

from runs.engine.digest import digest_request
from runs.engine.effects import CallModel, ModelReplied, ToolResult, ToolsFinished
from runs.engine.executor import run_agent_loop
from runs.engine.types import AgentSpec, ExecutorOptions, Reply, ToolCall
from tools.spec import ToolSpec

ROUNDS = 210
EARLY = range(3, 8)
LATE = range(195, 206)
MOST_MS = 0.15
MOST_RATIO = 1.3

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
ADD = ToolSpec(
    name="add",
    description="Adds two whole numbers.",
    args_schema={"type": "object", "properties": NUMBERS, "required": ["a", "b"]},
)


def reply(number: int) -> ModelReplied:
    """Return a reply with one call."""
    call = ToolCall(id=f"c{number}", name="add", arguments=f'{{"a": {number}, "b": 1}}')
    return ModelReplied(Reply(text="Adding up.", tool_calls=(call,)), elapsed=0.1)


def one_run(replies: list[ModelReplied], *, digests: bool) -> list[float]:
    """Return the CPU milliseconds of each round of one run."""
    spec = AgentSpec(
        kind="tool-calling",
        tools=(ADD,),
        executor=ExecutorOptions(max_iterations=ROUNDS, loop_guard=None),
    )
    run = run_agent_loop(spec, {"input": "Add up."})
    effect = next(run)
    spent: list[float] = []
    for number in range(ROUNDS):
        began = time.thread_time_ns()
        assert isinstance(effect, CallModel)
        request = effect.request
        if digests:
            digest_request(request)
        run.send(replies[number])
        answered = ToolsFinished((ToolResult(str(number + 1), value=number + 1),))
        try:
            effect = run.send(answered)
        except StopIteration:
            break
        spent.append((time.thread_time_ns() - began) / 1e6)
    return spent


def measure(runs: int, *, digests: bool) -> tuple[float, float]:
    """Return the median milliseconds of a step at round 5 and at round 200."""
    replies = [reply(number) for number in range(ROUNDS)]
    spent = [one_run(replies, digests=digests) for _ in range(runs)]
    early = statistics.median(run[at - 1] for run in spent for at in EARLY)
    late = statistics.median(run[at - 1] for run in spent for at in LATE)
    return early, late


def main() -> int:
    """Measure, print, and say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(prog="bench_engine")
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    met = True
    for digests, what in ((False, "engine"), (True, "engine and digest")):
        early, late = measure(runs, digests=digests)
        ratio = late / early
        met = met and (digests or early < MOST_MS) and ratio <= MOST_RATIO
        sys.stdout.write(
            f"{what}: {early:.4f} ms a step at round 5, "
            f"{late:.4f} ms at round 200, ratio {ratio:.2f}\n"
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
