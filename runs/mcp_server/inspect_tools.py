"""Tools that look at agents and runs, as far as their user may see them."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runs.live.narration import shorten_observation
from runs.live.run_links import build_run_url
from runs.mcp_server.results import tool_error, tool_result
from runs.mcp_server.rpc import INVALID_PARAMS, RpcError
from runs.models import Agent, AgentStep, ModelAttempt, Run
from runs.serializers import (
    RUN_RELATIONS,
    STEP_FIELDS,
    annotate_child_runs,
    format_timestamp,
    run_json,
    step_json,
)
from runs.services.spec.freeze import build_agent_tool_spec
from runs.ui.error_labels import get_error_label

Json = dict[str, Any]

MAX_RUNS = 50
MAX_STEPS = 50
MAX_FAILURES = 5
"""Newest failed steps and model attempts in an explanation."""

RunNumber = Annotated[int, Field(ge=1, lt=2**63, description="Number of the run.")]
RunStatus = Literal[
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_decision",
    "waiting",
    "succeeded",
    "limit_reached",
    "failed",
    "canceled",
]


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ListAgentsArguments(Arguments):
    pass


class ListRunsArguments(Arguments):
    agent: str | None = Field(default=None, description="Slug of an agent.")
    status: RunStatus | None = None
    before: RunNumber | None = Field(
        default=None, description="Only runs with a lower number, for the next page."
    )
    limit: int = Field(default=20, ge=1, le=MAX_RUNS)


class ReadRunArguments(Arguments):
    run: RunNumber
    steps_after: int = Field(
        default=-1, ge=-1, lt=2**31, description="Only steps with a higher index."
    )


class ExplainRunArguments(Arguments):
    run: RunNumber


class InspectionTool(NamedTuple):
    description: str
    arguments: type[Arguments]
    inspect: Callable[[User, Any], Json]


def list_inspection_tools() -> list[Json]:
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.arguments.model_json_schema(),
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }
        for name, tool in INSPECTION_TOOLS.items()
    ]


def call_inspection_tool(user: User, name: str, arguments: Json) -> Json:
    """Return the result of a call; raise `RpcError` for an unknown tool."""
    tool = INSPECTION_TOOLS.get(name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]}")
    try:
        found = tool.inspect(user, tool.arguments.model_validate(arguments))
    except ValidationError as error:
        return tool_error("; ".join(describe_mistakes(error)))
    except Run.DoesNotExist:
        return tool_error(f"Run {arguments.get('run')} not found.")
    return tool_result(json.dumps(found, ensure_ascii=False, default=str), found)


def describe_mistakes(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_context=False)
    return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found]


def inspect_agents(user: User, arguments: ListAgentsArguments) -> Json:
    agents = Agent.objects.usable_by(user).select_related("prompt", "owner")
    return {"agents": [summarize_agent(agent) for agent in agents.order_by("slug")]}


def summarize_agent(agent: Agent) -> Json:
    spec = build_agent_tool_spec(agent)
    return {
        "slug": agent.slug,
        "name": agent.name,
        "description": spec.description,
        "owner": agent.owner.get_username(),
        "inputs": list((spec.args_schema or {}).get("properties", ())),
        "is_offered": agent.is_offered,
    }


def inspect_runs(user: User, arguments: ListRunsArguments) -> Json:
    runs = Run.objects.visible_to(user).select_related(*RUN_RELATIONS)
    if arguments.agent is not None:
        slug = arguments.agent.replace("\0", "")
        runs = runs.filter(agent__in=Agent.objects.filter(slug=slug))
    if arguments.status is not None:
        runs = runs.filter(status=arguments.status)
    if arguments.before is not None:
        runs = runs.filter(pk__lt=arguments.before)
    rows = runs.defer("inputs", "turn_ids", "given_turns", "output_log", "output")
    return {"runs": [run_summary(r) for r in rows.order_by("-pk")[: arguments.limit]]}


def run_summary(run: Run) -> Json:
    return {
        "run": run.pk,
        "agent": run.agent.slug,
        "title": run.title,
        "status": run.status,
        "error_code": run.error_code or None,
        "created_at": format_timestamp(run.created_at),
        "ended_at": format_timestamp(run.ended_at),
        "url": build_run_url(run.pk),
    }


def inspect_run(user: User, arguments: ReadRunArguments) -> Json:
    run = get_run_to_inspect(user, arguments.run)
    rows = run.steps.filter(index__gt=arguments.steps_after).only(*STEP_FIELDS)
    steps = list(annotate_child_runs(rows).order_by("index")[: MAX_STEPS + 1])
    return {
        **run_json(run),
        "url": build_run_url(run.pk),
        "steps": [short_step_json(step) for step in steps[:MAX_STEPS]],
        "has_more_steps": len(steps) > MAX_STEPS,
    }


def explain_run(user: User, arguments: ExplainRunArguments) -> Json:
    """Return what went wrong in a run, newest first."""
    run = get_run_to_inspect(user, arguments.run)
    failed = run.steps.filter(status=AgentStep.Status.FAILED).only(*STEP_FIELDS)
    attempts = ModelAttempt.objects.filter(run=run).order_by("-number", "-attempt")
    shape = run_json(run)
    return {
        **run_summary(run),
        "error": shape["error"],
        "meaning": get_error_label(run.error_code) if run.error_code else None,
        "stop_reason": shape["stop_reason"],
        "truncated": shape["truncated"],
        "failed_steps": [
            short_step_json(step)
            for step in annotate_child_runs(failed).order_by("-index")[:MAX_FAILURES]
        ],
        "failed_model_attempts": [
            {
                "model_call": attempt.number,
                "attempt": attempt.attempt,
                "code": attempt.code,
                "message": attempt.message,
            }
            for attempt in attempts[:MAX_FAILURES]
        ],
    }


def get_run_to_inspect(user: User, pk: int) -> Run:
    """Return the run; raise `Run.DoesNotExist`, also if it is not for this user."""
    return Run.objects.visible_to(user).select_related(*RUN_RELATIONS).get(pk=pk)


def short_step_json(step: AgentStep) -> Json:
    shape = step_json(step)
    if shape["observation"] is not None:
        shape["observation"] = shorten_observation(shape["observation"])
    return shape


INSPECTION_TOOLS = {
    "list_agents": InspectionTool(
        "List the agents that you may run, with their inputs.",
        ListAgentsArguments,
        inspect_agents,
    ),
    "list_runs": InspectionTool(
        "List your runs, newest first.", ListRunsArguments, inspect_runs
    ),
    "read_run": InspectionTool(
        "Read a run: inputs, steps and output.", ReadRunArguments, inspect_run
    ),
    "explain_run": InspectionTool(
        "Say why a run failed or stopped: its error, failed steps and model attempts.",
        ExplainRunArguments,
        explain_run,
    ),
}
