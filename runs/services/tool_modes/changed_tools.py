"""Tools whose replayed results come from another definition than that of the run."""

from typing import Any

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
    before = {one.name: _describe_calls(one) for one in load_spec(recorded.spec).tools}
    now = {one.name: _describe_calls(one) for one in load_spec(run.spec).tools}
    steps = run.steps.filter(answered_by__in=REPLAYED).order_by()
    names = set(steps.values_list("tool", flat=True))
    return sorted(name for name in names if before.get(name) != now.get(name))


def _describe_calls(spec: ToolSpec) -> tuple[Any, ...]:
    """Return what decides how a call is answered."""
    return spec.kind, spec.config, spec.args_schema, spec.effect
