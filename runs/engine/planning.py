"""Turning the calls of a reply into steps: tool and input, or what is wrong."""

from collections import Counter
from typing import Any, NamedTuple

from runs.engine.effects import PlannedStep
from runs.engine.kinds.kind import ParsedCall
from runs.engine.parsing.arguments import coerce_tool_input
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentAction
from tools.spec import ToolSpec

PARSE_ERROR_TOOL = "_Exception"
"""The tool's name in the step of a parse error."""


class _PlannedCall(NamedTuple):
    name: str
    input: Any
    tool: ToolSpec | None
    observation: str | None


def plan_calls(
    calls: tuple[ParsedCall, ...],
    toolbox: Toolbox,
    *,
    start: int,
    log: str,
    used: Counter[str],
) -> tuple[PlannedStep, ...]:
    """Return one step per call; `used` counts the calls so far, by tool."""
    steps: list[PlannedStep] = []
    ids: set[str] = set()
    for call in calls:
        planned = _plan_call(call, toolbox, used)
        if planned.tool is not None:
            used[planned.name] += 1
        action = AgentAction(
            tool=planned.name,
            tool_input=planned.input,
            log=log,
            call_id=_unique_id(call.call_id, ids, start + len(steps)),
        )
        steps.append(
            PlannedStep(start + len(steps), action, planned.tool, planned.observation)
        )
    return tuple(steps)


def plan_parse_error(observation: str, *, start: int, log: str) -> PlannedStep:
    """Return the answered step of a reply that could not be parsed."""
    action = AgentAction(tool=PARSE_ERROR_TOOL, tool_input=log, log=log)
    return PlannedStep(start, action, None, observation)


def _plan_call(call: ParsedCall, toolbox: Toolbox, used: Counter[str]) -> _PlannedCall:
    tool = toolbox.find(call.name)
    given = call.input
    if tool is None:
        return _PlannedCall(
            call.name, given, None, _format_unknown_tool(call.name, toolbox)
        )
    if call.problem is not None:
        return _PlannedCall(tool.name, given, None, call.problem)
    if has_reached_call_limit(tool, used):
        limit = tool.calls_per_run
        often = "once" if limit == 1 else f"{limit} times"
        message = f"The limit is reached: {tool.name!r} may be called {often} per run."
        return _PlannedCall(tool.name, given, None, message)
    fitted = coerce_tool_input(tool, given)
    if fitted.problem is not None:
        return _PlannedCall(tool.name, fitted.value, None, fitted.problem)
    return _PlannedCall(tool.name, fitted.value, tool, None)


def has_reached_call_limit(tool: ToolSpec, used: Counter[str]) -> bool:
    """Whether the tool has been called as often as a run may call it."""
    return tool.calls_per_run is not None and used[tool.name] >= tool.calls_per_run


def _format_unknown_tool(name: str, toolbox: Toolbox) -> str:
    if not toolbox.tools:
        return f"There is no tool {name!r}, and no other either. Answer without tools."
    return f"There is no tool {name!r}. The tools are: {toolbox.names}."


def _unique_id(call_id: str | None, ids: set[str], index: int) -> str | None:
    """Return an id that is unique in the reply; providers refuse duplicates."""
    if call_id is None:
        return None
    unique = call_id if call_id and call_id not in ids else f"call_{index}"
    ids.add(unique)
    return unique
