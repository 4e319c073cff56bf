"""Run scenario files: scripted conversations with the expected behavior.

python -m runs.engine.scenarios [--json] FILE_OR_DIR ...
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, assert_never

from pydantic import ValidationError

from runs.engine.effects import (
    CallModel,
    CallTools,
    ModelCallFailed,
    ModelCallTimedOut,
    ModelReplied,
    Outcome,
    PlannedStep,
    ToolResult,
    ToolsFinished,
)
from runs.engine.executor import run_agent_loop
from runs.engine.observations import stringify_value
from runs.engine.types import (
    AgentResult,
    AgentSpec,
    AgentStep,
    ExecutorOptions,
    HistoryTurn,
    ModelRequest,
    Reply,
    RunError,
    ToolCall,
    Usage,
)
from tools.spec import ToolSpec
from tools.text.storable import is_same_json


class BadScenario(Exception):
    """A file that cannot be run; the message says why."""


class TurnOutcome(NamedTuple):
    result: AgentResult
    steps: list[AgentStep]
    requests: list[str]


class ScenarioVerdict(NamedTuple):
    id: str
    passed: bool
    got: list[dict[str, Any]]
    why: str


@dataclass
class ScenarioScript:
    """Answers effects with a scenario's replies and stubs, on a virtual clock."""

    replies: list[Any]
    stubs: dict[str, dict[str, Any]]
    steps: list[AgentStep] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    used: dict[str, set[int]] = field(default_factory=dict)
    """For each recorded tool the calls that have answered."""

    def ask_model(self, call: CallModel) -> Outcome:
        self.requests.append(flatten_request(call.request))
        if not self.replies:
            return ModelCallFailed("script", "The script has no reply left.")
        reply = self.replies.pop(0)
        if isinstance(reply, str):
            return ModelReplied(Reply(text=reply))
        slept = reply.get("sleep", 0.0)
        if call.seconds is not None and slept > call.seconds:
            return ModelCallTimedOut(elapsed=call.seconds)
        if "raise" in reply:
            return ModelCallFailed("script", reply["raise"], elapsed=slept)
        calls = tuple(
            _build_tool_call(called) for called in reply.get("tool_calls") or ()
        )
        text, usage = reply.get("content") or "", reply.get("usage")
        used = Usage.model_validate(usage) if usage is not None else None
        answer = Reply(text=text, tool_calls=calls, usage=used)
        return ModelReplied(answer, elapsed=slept)

    def call_tools(self, call: CallTools) -> Outcome:
        """Call the stubs, all at the same virtual time."""
        results = tuple(self._call(step, call.seconds) for step in call.steps)
        for step, result in zip(call.steps, results, strict=True):
            message, failed = result.observation, result.failed
            self.steps.append(
                AgentStep(action=step.action, observation=message, failed=failed)
            )
        return ToolsFinished(results)

    def _call(self, step: PlannedStep, seconds: float | None) -> ToolResult:
        if step.tool is None:
            return ToolResult(step.observation or "", failed=True)
        stub = self.stubs[step.tool.name]
        if stub["kind"] == "recorded":
            return self._replay(step, stub["calls"])
        if stub["kind"] == "raise":
            return ToolResult(stub["message"], failed=True)
        slept = stub["seconds"] if stub["kind"] == "sleep" else 0.0
        if seconds is not None and slept > seconds:
            return ToolResult("The time was over.", failed=True, elapsed=seconds)
        try:
            value = STUBS[stub["kind"]](stub, step.action.tool_input)
        except (KeyError, TypeError) as error:
            return ToolResult(f"The stub failed: {error!r}.", failed=True)
        return ToolResult(stringify_value(value), value=value, elapsed=slept)

    def _replay(self, step: PlannedStep, calls: list[dict[str, Any]]) -> ToolResult:
        """Answer with the first recorded call with equal input that is left."""
        used = self.used.setdefault(step.action.tool, set())
        for number, call in enumerate(calls):
            same = is_same_json(call["tool_input"], step.action.tool_input)
            if same and number not in used:
                used.add(number)
                return ToolResult(
                    call["observation"],
                    failed=call.get("failed", False),
                    value=call.get("value"),
                    elapsed=call.get("seconds", 0.0),
                    tokens=call.get("tokens", 0),
                    cost=call.get("cost", 0.0),
                )
        return ToolResult("There is no recording of this call.", failed=True)


def _build_tool_call(called: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=called.get("id") or "",
        name=called["name"],
        arguments=called.get("arguments") or "",
    )


STUBS: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "constant": lambda stub, given: stub["value"],
    "sleep": lambda stub, given: stub["value"],
    "echo": lambda stub, given: f"echo: {stringify_value(given)}",
    "add": lambda stub, given: given["a"] + given["b"],
}


def flatten_request(request: ModelRequest) -> str:
    """Return everything that a request sends, as one text."""
    parts: list[str] = []
    for message in request.messages:
        parts.append(message.text)
        parts.extend(f"{call.name}\n{call.arguments}" for call in message.tool_calls)
    for tool in request.tools:
        parts += [tool.name, tool.description, stringify_value(tool.args_schema)]
    return "\n".join(parts)


def run_scenario_turn(
    spec: AgentSpec,
    turn: dict[str, Any],
    script: ScenarioScript,
    past: list[HistoryTurn],
) -> TurnOutcome:
    run = run_agent_loop(spec, turn["inputs"], turns=tuple(past))
    try:
        effect = next(run)
        while True:
            match effect:
                case CallModel():
                    effect = run.send(script.ask_model(effect))
                case CallTools():
                    effect = run.send(script.call_tools(effect))
                case _:
                    assert_never(effect)
    except StopIteration as end:
        return TurnOutcome(end.value, script.steps, script.requests)


def run_scenario(scenario: dict[str, Any]) -> ScenarioVerdict:
    """Run all turns of a scenario and compare them with the expectations."""
    stubs = {tool["name"]: tool["stub"] for tool in scenario["tools"]}
    remembers = scenario["agent"].get("memory") == "buffer"
    past = [HistoryTurn.model_validate(turn) for turn in scenario.get("history", ())]
    got: list[dict[str, Any]] = []
    for turn in scenario.get("turns", [scenario]):
        ended = _play_turn(
            scenario, turn, ScenarioScript(list(turn["replies"]), stubs), past
        )
        got.append(_summarize_outcome(ended))
        if why := "; ".join(_find_differences(turn["expect"], ended)):
            return ScenarioVerdict(scenario["id"], False, got, why)
        if remembers:
            past += build_buffer_memory(turn["inputs"], ended.result)
    return ScenarioVerdict(scenario["id"], True, got, "")


def _play_turn(
    scenario: dict[str, Any],
    turn: dict[str, Any],
    script: ScenarioScript,
    past: list[HistoryTurn],
) -> TurnOutcome:
    try:
        # Only scenarios leave repeated rounds alone unless they say otherwise.
        options = ExecutorOptions(
            **{"loop_guard": None, **scenario.get("executor", {})}
        )
    except ValidationError as error:
        message = RunError(code="spec", message=str(error))
        return TurnOutcome(AgentResult(status="failed", error=message), [], [])
    return run_scenario_turn(build_scenario_spec(scenario, options), turn, script, past)


def build_buffer_memory(
    inputs: dict[str, Any], result: AgentResult
) -> list[HistoryTurn]:
    """Return what buffer memory keeps of a run: nothing if it failed."""
    question = stringify_value(inputs.get("input", ""))
    match result.status:
        case "succeeded":
            return [
                HistoryTurn(question=question, answer=stringify_value(result.output))
            ]
        case "limit_reached":
            return [HistoryTurn(question=question)]
        case "failed":
            return []
        case _:
            assert_never(result.status)


def build_scenario_spec(
    scenario: dict[str, Any], executor: ExecutorOptions
) -> AgentSpec:
    tools = tuple(
        ToolSpec(**{k: v for k, v in tool.items() if k != "stub"})
        for tool in scenario["tools"]
    )
    more = {k: v for k, v in scenario["agent"].items() if k in ("prompt", "prices")}
    return AgentSpec.model_validate(
        {
            "kind": scenario["agent"]["kind"],
            "tools": tools,
            "executor": executor,
            **more,
        }
    )


def _status_label(result: AgentResult) -> str:
    if result.status == "limit_reached":
        return f"stopped_{result.stop_reason}"
    return {"succeeded": "finished"}.get(result.status, result.status)


def _summarize_outcome(ended: TurnOutcome) -> dict[str, Any]:
    return {
        "status": _status_label(ended.result),
        "output": ended.result.output,
        "error": ended.result.error.message if ended.result.error else None,
        "steps": [
            {
                "tool": step.action.tool,
                "tool_input": step.action.tool_input,
                "observation": step.observation,
                "error": step.failed,
            }
            for step in ended.steps
        ],
        "model_calls": len(ended.requests),
    }


def _find_differences(expect: dict[str, Any], ended: TurnOutcome) -> Iterator[str]:
    got = _summarize_outcome(ended)
    for key in ("status", "output", "model_calls"):
        if key in expect and not is_same_json(expect[key], got[key]):
            yield f"{key}: expected {expect[key]!r}, got {got[key]!r}"
    yield from _find_step_differences(expect.get("steps"), got["steps"])
    yield from _find_request_differences(expect, ended.requests)


def _find_step_differences(
    expected: list[dict[str, Any]] | None, got: list[dict[str, Any]]
) -> Iterator[str]:
    if expected is None:
        return
    if len(expected) != len(got):
        yield f"expected {len(expected)} steps, got {len(got)}: {got}"
        return
    for index, (want, step) in enumerate(zip(expected, got, strict=True)):
        for key, value in {"error": False, **want}.items():
            if not is_same_json(value, step[key]):
                yield f"step {index} {key}: expected {value!r}, got {step[key]!r}"


def _find_request_differences(
    expect: dict[str, Any], requests: list[str]
) -> Iterator[str]:
    for key, must in (("prompt_contains", True), ("prompt_excludes", False)):
        for index, texts in enumerate(expect.get(key, ())):
            request = requests[index] if index < len(requests) else ""
            for text in texts:
                if (text in request) is not must:
                    verb = "lacks" if must else "has"
                    yield f"request {index + 1} {verb} {text!r}: {request!r}"


def load_scenarios(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the scenarios of a file, or of all JSON files in a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BadScenario(f"{path} contains no scenario files (*.json).")
    for file in files:
        yield from _read_scenario_file(file)


def _read_scenario_file(file: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadScenario(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise BadScenario(f"{file} is not valid JSON: {error}.") from error
    if not isinstance(content, list):
        raise BadScenario(f"{file} must contain a list of scenarios.")
    return content


def run_scenarios(paths: Sequence[Path]) -> Iterator[ScenarioVerdict]:
    for path in paths:
        for number, scenario in enumerate(load_scenarios(path), start=1):
            if not isinstance(scenario, dict):
                raise BadScenario(f"Scenario {number} of {path} is not an object.")
            try:
                yield run_scenario(scenario)
            except (AttributeError, KeyError, TypeError, ValidationError) as error:
                why = f"The scenario is not in the format: {error!r}."
                yield ScenarioVerdict(str(scenario.get("id", number)), False, [], why)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenarios given on the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="runs.engine.scenarios")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_DIR")
    options = parser.parse_args(arguments)
    passed = failed = 0
    try:
        for verdict in run_scenarios(options.paths):
            passed, failed = passed + verdict.passed, failed + (not verdict.passed)
            _print_verdict(verdict, as_json=options.json)
    except BadScenario as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


def _print_verdict(verdict: ScenarioVerdict, *, as_json: bool) -> None:
    if as_json:
        got = verdict.got[0] if len(verdict.got) == 1 else verdict.got
        shape = {**verdict._asdict(), "got": got}
        sys.stdout.write(json.dumps(shape, ensure_ascii=False) + "\n")
    elif not verdict.passed:
        sys.stdout.write(f"FAILED {verdict.id}: {verdict.why}\n")


if __name__ == "__main__":
    sys.exit(main())
