"""Export a run as a scenario: its replies and results, run again without any server.

`python -m runs.engine.scenarios FILE` runs it. An export is run once before anybody
gets it, so that it is known to lead to the same steps and the same end.
"""

import logging
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.scenarios import run_scenario
from runs.engine.types import Reply, Usage
from runs.models import AgentStep, ModelAttempt, ModelCall, Resume, Run
from runs.services.errors import CannotExportScenario
from runs.services.runs.mask_secrets import SecretMask
from runs.services.tool_modes.recording import load_requested_arguments
from runs.store.history import load_earlier_turns
from runs.store.specs import load_spec
from tools.spec import ToolSpec

logger = logging.getLogger(__name__)

EXPORTED_STATUSES = {"succeeded": "finished", "failed": "failed"}
TOOL_FIELDS = {
    *("name", "description", "args_schema", "return_direct", "on_error"),
    *("calls_per_run", "output_limit"),
}
"""What the engine knows of a tool; addresses and credentials stay here."""


def export_scenario(run: Run) -> dict[str, Any]:
    """Return the scenario of an ended run, without secrets.

    Raises `CannotExportScenario` if it would not lead to the same end.
    """
    _check_exportable(run)
    scenario = _mask_scenario(build_scenario(run), SecretMask(run))
    try:
        verdict = run_scenario(scenario)
    except (KeyError, TypeError, ValueError) as error:
        raise _refuse(run, repr(error)) from None
    if not verdict.passed:
        raise _refuse(run, verdict.why)
    return scenario


def _refuse(run: Run, why: str) -> CannotExportScenario:
    """Log what differs, in the words of the engine; return what people read."""
    logger.info("run %s is not exported as a scenario: %s", run.pk, why[:1000])
    return CannotExportScenario(
        _(
            "This run cannot be exported as a scenario, because the scenario would not "
            "lead to the same steps and the same end."
        )
    )


def _check_exportable(run: Run) -> None:
    if run.status not in ("succeeded", "failed", "limit_reached"):
        raise CannotExportScenario(_("Only ended runs can be exported as a scenario."))
    if run.is_imported:
        raise CannotExportScenario(
            _("An imported run cannot be exported as a scenario.")
        )
    if Resume.objects.filter(run=run).exists():
        raise CannotExportScenario(
            _("A run that was resumed cannot be exported as a scenario.")
        )


def build_scenario(run: Run) -> dict[str, Any]:
    spec = load_spec(run.spec)
    requested = load_requested_arguments(run.pk)
    steps = list(AgentStep.objects.filter(run=run).order_by("index"))
    for step in steps:
        step.tool_input = requested.get(step.pk, step.tool_input)
    guard = spec.executor.loop_guard
    prompt = {"prompt": _dump(spec.prompt)} if spec.prompt else {}
    prices = {"prices": _dump(spec.prices)} if spec.prices else {}
    is_timed = spec.executor.max_execution_time is not None
    replies = build_scenario_replies(run, is_timed=is_timed)
    return {
        "id": f"run-{run.pk}",
        "title": run.title,
        "agent": {"kind": spec.kind, **prompt, **prices},
        "tools": [build_scenario_tool(tool, steps) for tool in spec.tools],
        "executor": {
            **_dump(spec.executor),
            "loop_guard": guard and guard.model_dump(mode="json"),
        },
        "history": [_dump(turn) for turn in load_earlier_turns(run)],
        "inputs": run.inputs,
        "replies": replies,
        "expect": {
            "status": EXPORTED_STATUSES.get(run.status, f"stopped_{run.stop_reason}"),
            **({"output": run.output} if run.status != "failed" else {}),
            "model_calls": len(replies),
            "steps": [
                {
                    "tool": step.tool,
                    "tool_input": step.tool_input,
                    "observation": step.observation,
                    "error": step.has_failed,
                }
                for step in steps
            ],
        },
    }


def _dump(value: Any) -> dict[str, Any]:
    shape: dict[str, Any] = value.model_dump(mode="json", exclude_defaults=True)
    return shape


def build_scenario_tool(tool: ToolSpec, steps: list[AgentStep]) -> dict[str, Any]:
    """Return a tool that answers with the results of its calls."""
    calls = [step for step in steps if step.tool == tool.name and step.effect]
    stub = {"kind": "recorded", "calls": [build_recorded_call(step) for step in calls]}
    shape = tool.model_dump(mode="json", include=TOOL_FIELDS, exclude_defaults=True)
    return {**shape, "stub": stub}


def build_recorded_call(step: AgentStep) -> dict[str, Any]:
    used = step.usage or {}
    more = {"value": step.value, "seconds": step.elapsed, **used}
    return {
        "tool_input": step.tool_input,
        "observation": step.observation,
        "failed": step.has_failed,
        **{name: value for name, value in more.items() if value},
    }


def build_scenario_replies(run: Run, *, is_timed: bool) -> list[dict[str, Any]]:
    """Return the replies in order; last the model call that failed, if one did."""
    calls = ModelCall.objects.filter(run=run).order_by("number")
    replies = [build_scenario_reply(call, is_timed=is_timed) for call in calls]
    failed = ModelAttempt.objects.filter(run=run, number=run.next_number)
    if run.status == Run.Status.FAILED and failed.exists():
        replies.append({"raise": run.error_message})
    return replies


def build_scenario_reply(call: ModelCall, *, is_timed: bool) -> dict[str, Any]:
    """Return a reply; one that a fork copied takes no time and no tokens.

    Times are left out if the run has no time limit: they change nothing.
    """
    reply = Reply.model_validate(call.reply)
    usage = Usage() if call.is_copied else reply.usage
    shape: dict[str, Any] = {"content": reply.text}
    if reply.tool_calls:
        shape["tool_calls"] = [one.model_dump(mode="json") for one in reply.tool_calls]
    if usage is not None:
        shape["usage"] = usage.model_dump(mode="json")
    if is_timed and not call.is_copied:
        shape["sleep"] = call.elapsed
    return shape


def _mask_scenario(scenario: dict[str, Any], mask: SecretMask) -> dict[str, Any]:
    """Return the scenario without secrets, those in arguments as text included."""
    replies = [
        {
            **reply,
            "tool_calls": [
                {**one, "arguments": mask.mask_text_or_json(one["arguments"])}
                for one in reply["tool_calls"]
            ],
        }
        if "tool_calls" in reply
        else reply
        for reply in scenario["replies"]
    ]
    masked: dict[str, Any] = mask.json({**scenario, "replies": replies})
    return masked
