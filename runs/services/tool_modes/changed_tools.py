"""Tools whose replayed results come from another definition than that of the run."""

from collections.abc import Iterable
from typing import Any

from runs.engine.types import AgentSpec
from runs.models import AgentStep, Run
from runs.services.tool_modes.select_mode import get_tool_mode
from runs.store.specs import load_spec
from tools.spec import ToolSpec

REPLAYED = (AgentStep.AnsweredBy.RECORDING, AgentStep.AnsweredBy.OTHER_ARGUMENTS)


def find_changed_tools(run: Run) -> list[str]:
    """Return the tools that answered from the recording and have changed since then.

    What they would answer now is not known. Empty if the recording no longer exists.
    """
    mode = get_tool_mode(run)
    if mode is None or mode.recording is None:
        return []
    recorded = Run.objects.select_related("spec").filter(pk=mode.recording).first()
    if recorded is None:
        return []
    steps = run.steps.filter(answered_by__in=REPLAYED).order_by()
    names = set(steps.values_list("tool", flat=True))
    return compare_tools(load_spec(recorded.spec), load_spec(run.spec), names)


def compare_tools(
    recorded: AgentSpec, spec: AgentSpec, names: Iterable[str]
) -> list[str]:
    """Return those of the tools whose calls are answered differently by now."""
    before = {one.name: _describe_calls(one) for one in recorded.tools}
    now = {one.name: _describe_calls(one) for one in spec.tools}
    return sorted(name for name in names if before.get(name) != now.get(name))


def compare_shared_tools(recorded: AgentSpec, spec: AgentSpec) -> list[str]:
    """Return the tools of both whose calls are answered differently by now."""
    shared = {one.name for one in recorded.tools} & {one.name for one in spec.tools}
    return compare_tools(recorded, spec, shared)


def _describe_calls(spec: ToolSpec) -> tuple[Any, ...]:
    """Return what decides how a call is answered."""
    return spec.kind, spec.config, spec.args_schema, spec.effect
