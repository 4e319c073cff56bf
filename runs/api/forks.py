"""Forking a run by the API."""

import json
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runs.api.door import answer
from runs.api.problems import Problem, refused, unreadable
from runs.api.runs import ALL, run_for, shape_of, within
from runs.engine.clean import clean_json
from runs.engine.types import (
    AgentSpec,
    Budget,
    ModelSettings,
    PromptMessage,
    PromptSpec,
    ToolCall,
)
from runs.models import Agent, AgentStep, ModelCall, Provider, Resume, Run
from runs.services.callable_agents import callable_agents
from runs.services.errors import CannotFork, InputsRefused, NotAllowed, SpecRefused
from runs.services.fork_edits import ForkEdits
from runs.services.fork_point import ForkPoint, end_row, fork_point
from runs.services.fork_run import fork_run, spec_then
from runs.services.freeze_agent import AGENT_KIND, agent_tool_spec
from tools.spec import ToolSpec

Choice = Literal["allow", "ask", "off"]
Place = Annotated[int, Field(ge=0, le=2_000_000_000)]


class Shape(BaseModel):
    """A part of the body; unknown fields are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CallShape(Shape):
    """One call of a reply; arguments as an object, or the text a model would send."""

    name: str
    arguments: dict[str, Any] | str = {}


class ReplyShape(Shape):
    """A reply in place of the model's."""

    text: str = ""
    tool_calls: list[CallShape] = []


class MessageShape(Shape):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    template: str


class LimitsShape(Shape):
    """Limits; a field that is sent as null is no limit."""

    max_iterations: int | None = None
    max_execution_time: float | None = None
    tokens: int | None = None
    cost: float | None = None


class ForkRun(Shape):
    """The body of `POST /api/v1/runs/{id}/fork`; no place: after the last step."""

    inputs: dict[str, str] | None = None
    """Values of variables that are new; the others stay."""
    step: Place | None = None
    """Index of a step."""
    model_call: Place | None = None
    """Number of a model call."""
    observation: str | None = None
    failed: bool = False
    call_again: bool = False
    reply: ReplyShape | None = None
    prompt: str | list[MessageShape] | None = None
    model: str | None = None
    provider: str | None = None
    parameters: dict[str, Any] | None = None
    tools: dict[str, Choice] | None = None
    agents: dict[str, Choice] | None = None
    """Other agents by their slugs; those that the run did not have are added."""
    limits: LimitsShape | None = None


def fork(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /runs/{id}/fork`: a new run that goes on from a place of this one; 201."""
    run = run_for(user, int(pk))
    body = fork_body(request)
    point = place_of(run, body)
    spec = spec_then(run, Resume.objects.filter(run=run), number=point.number)
    try:
        new = fork_run(
            point,
            by=user,
            edits=edits_of(body, spec, agent=run.agent, user=user),
            source=Run.Source.API,
        )
    except InputsRefused as error:
        raise Problem(422, within("inputs", error.errors)) from None
    except SpecRefused as error:
        raise Problem(422, within("fork", error.errors)) from None
    except NotAllowed as error:
        raise refused("fork", str(error), 403) from None
    except CannotFork as error:
        raise refused("fork", str(error)) from None
    location = reverse("api-run", args=[new.pk])
    return answer(shape_of(run_for(user, new.pk), ALL), 201, Location=location)


def fork_body(request: HttpRequest) -> ForkRun:
    """Read the body, without characters that no database takes; raise what is wrong."""
    try:
        body = ForkRun.model_validate_json(request.body or b"{}")
        clean = clean_json(body.model_dump(exclude_unset=True))
        return ForkRun.model_validate_json(json.dumps(clean))
    except ValidationError as error:
        raise unreadable(error) from None


def place_of(run: Run, body: ForkRun) -> ForkPoint:
    """Return where to fork; raise a 422."""
    if body.step is not None and body.model_call is not None:
        raise refused("step", "Name a step or a model call, not both.")
    row = end_row(run)
    if body.step is not None:
        step = AgentStep.objects.filter(run=run, index=body.step)
        number = step.values_list("model_call__number", flat=True).first()
        row = 0 if number is None else body.step + number + 2
    elif body.model_call is not None:
        call = ModelCall.objects.filter(run=run, number=body.model_call).first()
        row = 0 if call is None else call.number + call.at_index + 1
    field = "step" if body.model_call is None else "model_call"
    try:
        return fork_point(run, row)
    except CannotFork:
        told = f"Run {run.pk} has no such place to fork at."
        raise refused(field, told) from None


def edits_of(body: ForkRun, spec: AgentSpec, *, agent: Agent, user: User) -> ForkEdits:
    """Return the changes the body asks for."""
    reply = body.reply
    tools = tools_of(body, spec.tools)
    if body.agents is not None:
        tools = with_agents(
            body.agents,
            spec.tools if tools is None else tools,
            agent=agent,
            user=user,
        )
    return ForkEdits(
        inputs=body.inputs,
        prompt=prompt_of(body, spec),
        model=model_of(body, spec.model, user),
        tools=tools,
        limits=limits_of(body, spec),
        reply_text=reply.text if reply else None,
        reply_calls=tuple(
            tool_call(call, place) for place, call in enumerate(reply.tool_calls)
        )
        if reply
        else (),
        observation=body.observation,
        has_failed=body.failed,
        calls_again=body.call_again,
    )


def tool_call(call: CallShape, place: int) -> ToolCall:
    """Return a call as a model would have made it."""
    given = call.arguments
    raw = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ToolCall(id=f"edited_{place}", name=call.name, arguments=raw)


def prompt_of(body: ForkRun, spec: AgentSpec) -> PromptSpec | None:
    """Return another prompt, with the values that were filled in before."""
    if body.prompt is None:
        return None
    partials = spec.prompt.partials if spec.prompt else {}
    if isinstance(body.prompt, str):
        return PromptSpec(template=body.prompt, partials=partials)
    messages = [PromptMessage(role=m.role, template=m.template) for m in body.prompt]
    return PromptSpec(messages=tuple(messages), partials=partials)


def model_of(body: ForkRun, old: ModelSettings, user: User) -> ModelSettings | None:
    """Return other settings; raise a 422 for a provider that is not usable."""
    changes: dict[str, Any] = {}
    if body.provider is not None:
        slug = body.provider.replace("\0", "")
        provider = Provider.objects.usable_by(user).filter(slug=slug).first()
        if provider is None:
            told = f"There is no provider {body.provider!r} that you may use."
            raise refused("provider", told)
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


def tools_of(body: ForkRun, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...] | None:
    """Return the tools that stay, and which of them ask."""
    if body.tools is None:
        return None
    unknown = set(body.tools) - {tool.name for tool in tools}
    if unknown:
        raise refused("tools", f"The run has no tool {sorted(unknown)[0]!r}.")
    chosen = {
        tool.name: body.tools.get(tool.name, "ask" if tool.asks else "allow")
        for tool in tools
    }
    return tuple(
        tool.model_copy(update={"asks": chosen[tool.name] == "ask"})
        for tool in tools
        if chosen[tool.name] != "off"
    )


def with_agents(
    chosen: dict[str, Choice], tools: tuple[ToolSpec, ...], *, agent: Agent, user: User
) -> tuple[ToolSpec, ...]:
    """Return the tools with the chosen agents among them; raise a 422."""
    have = {t.config.get("agent", ""): t for t in tools if t.kind == AGENT_KIND}
    wanted = [slug.replace("\0", "") for slug in chosen if slug not in have]
    more = {
        one.slug: one for one in callable_agents(agent, user).filter(slug__in=wanted)
    }
    if unknown := sorted(set(chosen) - set(have) - set(more)):
        raise refused("agents", f"There is no agent {unknown[0]!r} that it may call.")
    kept = [tool for tool in tools if chosen.get(tool.config.get("agent", "")) is None]
    asked = {**have, **{slug: agent_tool_spec(one) for slug, one in more.items()}}
    return (
        *kept,
        *(
            asked[slug].model_copy(update={"asks": choice == "ask"})
            for slug, choice in chosen.items()
            if choice != "off"
        ),
    )


def limits_of(body: ForkRun, spec: AgentSpec) -> dict[str, Any]:
    """Return the limits that were sent, as fields of `ExecutorOptions`."""
    if body.limits is None:
        return {}
    sent = body.limits.model_dump(exclude_unset=True)
    budget = (spec.executor.budget or Budget()).model_dump()
    found = {k: v for k, v in sent.items() if k not in budget}
    if own := {k: v for k, v in sent.items() if k in budget}:
        new = {**budget, **own}
        found["budget"] = new if any(v is not None for v in new.values()) else None
    return found
