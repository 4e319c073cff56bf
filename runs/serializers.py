"""The JSON of runs, steps and model calls, in responses and in event streams."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, QuerySet

from runs.engine.types import TRUNCATED
from runs.models import AgentStep, ModelCall, Run
from runs.services.providers.run_wait import RunWait, get_run_wait
from runs.services.runs.limit_wait import LimitWait, get_limit_wait
from runs.services.tool_modes.select_mode import get_tool_mode

Json = dict[str, Any]

MAX_STEPS = 500
"""Steps in one response."""

RUN_RELATIONS = ("agent", "version")
"""Relations that `run_json` reads, for `select_related`."""

STEP_FIELDS = (
    "run_id",
    "index",
    "round",
    "tool",
    "tool_input",
    "log",
    "observation",
    "status",
    "answered_by",
    "progress",
    "duration",
    "created_seq",
    "changed_seq",
)
"""Fields that `step_json` and event streams read, for `only`."""


def run_json(run: Run, steps: Iterable[AgentStep] | None = None) -> Json:
    """Return the run; with `steps`, also those, without `steps_next`.

    Dates are ISO 8601 in UTC, `cost` is in the currency of the price table. A run that
    another one started has a `parent` too, one that waits for its provider or a
    limit a `waiting_for`, and one whose calls are not all made a `tool_mode`; `usage`
    includes that of its sub-agents.
    """
    shape: Json = {
        "id": run.pk,
        "status": run.status,
        "is_over": run.is_over,
        "stop_reason": run.stop_reason or None,
        "error": error_json(run),
        "agent": run.agent.slug,
        "version": run.version.number if run.version else None,
        "conversation": run.conversation_id,
        "inputs": run.inputs,
        "output": run.output,
        "finish_reason": run.finish_reason or None,
        "truncated": run.is_truncated,
        "keep_forever": run.keep_forever,
        "seq": run.seq,
        "created_at": format_timestamp(run.created_at),
        "started_at": format_timestamp(run.started_at),
        "ended_at": format_timestamp(run.ended_at),
        "usage": {
            "input_tokens": run.input_tokens,
            "output_tokens": run.output_tokens,
            "cost": float(run.cost),
            "model_calls": run.model_calls,
        },
    }
    wait = get_run_wait(run)
    limit = get_limit_wait(run)
    if limit is not None:
        shape["waiting_for"] = limit_wait_json(limit)
    elif wait is not None:
        shape["waiting_for"] = wait_json(wait)
    if run.tool_mode:
        shape["tool_mode"] = tool_mode_json(run)
    if run.parent_step_id is not None:
        shape["parent"] = parent_json(run.parent_step_id)
    if steps is not None:
        shape["steps"] = [step_json(step) for step in steps]
    return shape


def wait_json(wait: RunWait) -> Json:
    """Return the provider, null for those who may not see it, and for how long."""
    return {
        "provider": None if wait.is_hidden else wait.provider.slug,
        "next_attempt_at": format_timestamp(wait.next_attempt_at),
        "until": format_timestamp(wait.until),
    }


def tool_mode_json(run: Run) -> Json:
    mode = get_tool_mode(run)
    return {"kind": run.tool_mode, "recording": mode.recording if mode else None}


def limit_wait_json(wait: LimitWait) -> Json:
    """Return which limit is full, and its number."""
    return {
        "limit": wait.kind,
        "most": wait.most,
        "provider": wait.provider,
        "next_attempt_at": format_timestamp(wait.next_attempt_at),
    }


def parent_json(step_id: int) -> Json:
    """Return the run that waits for this one, and at which of its steps."""
    step = AgentStep.objects.values("run_id", "index").get(pk=step_id)
    return {"run": step["run_id"], "step": step["index"]}


def annotate_child_runs(steps: "QuerySet[AgentStep]") -> "QuerySet[AgentStep]":
    """Annotate `child_run`, the sub-agent's run that a step has started."""
    return steps.annotate(child_run=F("child__pk"))


def error_json(run: Run) -> Json | None:
    if not run.error_code and not run.error_message:
        return None
    return {"code": run.error_code, "message": run.error_message}


def step_json(step: AgentStep) -> Json:
    """Return one step; `observation` is null until there is one.

    `error` says whether the observation is an error. A step that called another agent
    has a `child` too, the id of that run; see `annotate_child_runs`. A running one has
    the `progress` that its tool has last reported, if any, and one that was not made
    names what has `answered_by` it.
    """
    has_result = step.is_answered or bool(step.observation)
    child = getattr(step, "child_run", None)
    shape: Json = {
        "index": step.index,
        "round": step.round,
        "tool": step.tool,
        "tool_input": step.tool_input,
        "log": step.log,
        "observation": step.observation if has_result else None,
        "error": step.has_failed,
        "status": step.status,
        "duration_ms": to_milliseconds(step.duration),
    }
    if child is not None:
        shape["child"] = child
    if step.answered_by:
        shape["answered_by"] = step.answered_by
    if step.status == AgentStep.Status.STARTED and step.progress:
        shape["progress"] = step.progress
    return shape


def call_json(call: ModelCall) -> Json:
    reply = call.reply
    return {
        "number": call.number,
        "purpose": call.purpose,
        "round": call.round,
        "at_index": call.at_index,
        "model": call.model,
        "text": reply.get("text", ""),
        "reasoning": reply.get("reasoning", ""),
        "tool_calls": reply.get("tool_calls", []),
        "finish_reason": reply.get("finish_reason", ""),
        "truncated": reply.get("finish_reason") == TRUNCATED,
        "usage": {
            "input_tokens": call.input_tokens,
            "cached_tokens": call.cached_tokens,
            "output_tokens": call.output_tokens,
            "reasoning_tokens": call.reasoning_tokens,
            "cost": float(call.cost),
        },
        "started_at": format_timestamp(call.started_at),
        "duration_ms": to_milliseconds(call.elapsed),
    }


def format_timestamp(at: datetime | None) -> str | None:
    """Return a time as `2026-01-31T12:00:00.000000Z`."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def to_milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
