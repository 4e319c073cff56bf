"""Forking a run through the API."""

import json
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import LimitsBody, StrictBody, parse_body
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem
from runs.api.route import Route
from runs.api.runs import (
    ALL_STEPS,
    get_run_for_user,
    prefix_field_errors,
    run_with_steps_json,
)
from runs.api.shapes import RunWithStepsShape
from runs.engine.parsing.clean import clean_json
from runs.engine.types import (
    AgentSpec,
    ModelSettings,
    PromptMessage,
    PromptSpec,
    ToolCall,
)
from runs.models import Agent, AgentStep, ModelCall, Provider, Resume, Run
from runs.services.agents.call_graph import find_callable_agents
from runs.services.errors import CannotFork, InputsRefused, NotAllowed, SpecRefused
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run, get_spec_at_call
from runs.services.forks.point import ForkPoint, get_end_row, load_fork_point
from runs.services.spec.freeze import AGENT_KIND, build_agent_tool_spec
from tools.spec import ToolSpec

ToolPermission = Literal["allow", "ask", "off"]
RowNumber = Annotated[int, Field(ge=0, le=2_000_000_000)]


class CallBody(StrictBody):
    """A call of a reply; arguments as an object, or text as a model would send it."""

    name: str
    arguments: dict[str, Any] | str = {}


class ReplyBody(StrictBody):
    """A reply in place of the model's."""

    text: str = ""
    tool_calls: list[CallBody] = []


class MessageBody(StrictBody):
    role: Literal["system", "user", "assistant", "tool"]
    template: str


class ForkRunBody(StrictBody):
    """The body of `POST /api/v1/runs/{id}/fork`; by default after the last step."""

    inputs: dict[str, str] | None = None
    """New values of variables; the others stay."""
    step: RowNumber | None = None
    """Index of a step."""
    model_call: RowNumber | None = None
    """Number of a model call."""
    observation: str | None = None
    failed: bool = False
    call_again: bool = False
    reply: ReplyBody | None = None
    prompt: str | list[MessageBody] | None = None
    model: str | None = None
    provider: str | None = None
    parameters: dict[str, Any] | None = None
    tools: dict[str, ToolPermission] | None = None
    agents: dict[str, ToolPermission] | None = None
    """Sub-agents by slug; those that the run did not have are added."""
    limits: LimitsBody | None = None


def create_fork(
    request: HttpRequest, user: User, pk: str, body: ForkRunBody
) -> HttpResponse:
    """Start a run that continues from a step or model call of this one."""
    run = get_run_for_user(user, int(pk))
    body = sanitize_fork_body(body)
    point = find_requested_fork_point(run, body)
    spec = get_spec_at_call(run, Resume.objects.filter(run=run), number=point.number)
    try:
        new = fork_run(
            point,
            by=user,
            edits=build_fork_edits(body, spec, agent=run.agent, user=user),
            source=Run.Source.API,
        )
    except InputsRefused as error:
        raise ApiProblem(422, prefix_field_errors("inputs", error.errors)) from None
    except SpecRefused as error:
        raise ApiProblem(422, prefix_field_errors("fork", error.errors)) from None
    except NotAllowed as error:
        raise field_problem("fork", str(error), 403) from None
    except CannotFork as error:
        raise field_problem("fork", str(error)) from None
    location = reverse("api-run", args=[new.pk])
    return json_response(
        run_with_steps_json(get_run_for_user(user, new.pk), ALL_STEPS),
        201,
        Location=location,
    )


def sanitize_fork_body(body: ForkRunBody) -> ForkRunBody:
    """Return the body as the database can store it."""
    clean = clean_json(body.model_dump(exclude_unset=True))
    return parse_body(json.dumps(clean).encode(), ForkRunBody)


def find_requested_fork_point(run: Run, body: ForkRunBody) -> ForkPoint:
    """Return where to fork; raise a 422."""
    if body.step is not None and body.model_call is not None:
        raise field_problem("step", "Use `step` or `model_call`, not both.")
    row = get_end_row(run)
    if body.step is not None:
        step = AgentStep.objects.filter(run=run, index=body.step)
        number = step.values_list("model_call__number", flat=True).first()
        row = 0 if number is None else body.step + number + 2
    elif body.model_call is not None:
        call = ModelCall.objects.filter(run=run, number=body.model_call).first()
        row = 0 if call is None else call.number + call.at_index + 1
    field = "step" if body.model_call is None else "model_call"
    try:
        return load_fork_point(run, row)
    except CannotFork:
        message = f"Run {run.pk} cannot be forked there."
        raise field_problem(field, message) from None


def build_fork_edits(
    body: ForkRunBody, spec: AgentSpec, *, agent: Agent, user: User
) -> ForkEdits:
    reply = body.reply
    tools = select_fork_tools(body, spec.tools)
    if body.agents is not None:
        tools = add_fork_agents(
            body.agents,
            spec.tools if tools is None else tools,
            agent=agent,
            user=user,
        )
    return ForkEdits(
        inputs=body.inputs,
        prompt=build_fork_prompt(body, spec),
        model=build_fork_model(body, spec.model, user),
        tools=tools,
        limits=body.limits.changed_options(spec.executor) if body.limits else {},
        reply_text=reply.text if reply else None,
        reply_calls=tuple(
            build_tool_call(call, place) for place, call in enumerate(reply.tool_calls)
        )
        if reply
        else (),
        observation=body.observation,
        has_failed=body.failed,
        calls_again=body.call_again,
    )


def build_tool_call(call: CallBody, place: int) -> ToolCall:
    given = call.arguments
    raw = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ToolCall(id=f"edited_{place}", name=call.name, arguments=raw)


def build_fork_prompt(body: ForkRunBody, spec: AgentSpec) -> PromptSpec | None:
    """Return the new prompt, with the old values of its variables."""
    if body.prompt is None:
        return None
    partials = spec.prompt.partials if spec.prompt else {}
    if isinstance(body.prompt, str):
        return PromptSpec(template=body.prompt, partials=partials)
    messages = [PromptMessage(role=m.role, template=m.template) for m in body.prompt]
    return PromptSpec(messages=tuple(messages), partials=partials)


def build_fork_model(
    body: ForkRunBody, old: ModelSettings, user: User
) -> ModelSettings | None:
    """Return the new settings; raise a 422 for a provider that the user may not use."""
    changes: dict[str, Any] = {}
    if body.provider is not None:
        slug = body.provider.replace("\0", "")
        provider = Provider.objects.usable_by(user).filter(slug=slug).first()
        if provider is None:
            message = f"Provider {body.provider!r} not found."
            raise field_problem("provider", message)
        changes |= {
            "provider": provider.slug,
            "provider_id": provider.pk,
            "stream": provider.stream,
        }
    if body.model is not None:
        changes["model"] = body.model
    if body.parameters is not None:
        changes["parameters"] = body.parameters
    return old.model_copy(update=changes) if changes else None


def select_fork_tools(
    body: ForkRunBody, tools: tuple[ToolSpec, ...]
) -> tuple[ToolSpec, ...] | None:
    """Return the tools that are kept, with their permissions."""
    if body.tools is None:
        return None
    unknown = set(body.tools) - {tool.name for tool in tools}
    if unknown:
        raise field_problem("tools", f"The run has no tool {sorted(unknown)[0]!r}.")
    chosen = {
        tool.name: body.tools.get(tool.name, "ask" if tool.asks else "allow")
        for tool in tools
    }
    return tuple(
        tool.model_copy(update={"asks": chosen[tool.name] == "ask"})
        for tool in tools
        if chosen[tool.name] != "off"
    )


def add_fork_agents(
    chosen: dict[str, ToolPermission],
    tools: tuple[ToolSpec, ...],
    *,
    agent: Agent,
    user: User,
) -> tuple[ToolSpec, ...]:
    """Return the tools with the requested agents added; raise a 422."""
    have = {t.config.get("agent", ""): t for t in tools if t.kind == AGENT_KIND}
    wanted = [slug.replace("\0", "") for slug in chosen if slug not in have]
    more = {
        one.slug: one
        for one in find_callable_agents(agent, user).filter(slug__in=wanted)
    }
    if unknown := sorted(set(chosen) - set(have) - set(more)):
        raise field_problem(
            "agents", f"Agent {unknown[0]!r} not found, or not callable by this agent."
        )
    kept = [tool for tool in tools if chosen.get(tool.config.get("agent", "")) is None]
    asked = {**have, **{slug: build_agent_tool_spec(one) for slug, one in more.items()}}
    return (
        *kept,
        *(
            asked[slug].model_copy(update={"asks": choice == "ask"})
            for slug, choice in chosen.items()
            if choice != "off"
        ),
    )


ROUTES = [
    Route(
        "POST",
        "runs/{id}/fork",
        create_fork,
        "Fork a run",
        RunWithStepsShape,
        body=ForkRunBody,
        cleans_text=True,
        status=201,
        is_idempotent=True,
    )
]
