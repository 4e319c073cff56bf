"""Agents in the API: read, create, change the draft, delete, export."""

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    save_groups,
    share_definition,
)
from runs.api.dispatch import json_response, no_content
from runs.api.problems import ApiProblem, field_problem
from runs.api.queries import Query
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.parsing.clean import clean_text
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import ExecutorOptions
from runs.models import Agent, AgentTool, PromptTemplate, Provider
from runs.models.agents import MAX_SUGGESTED_QUESTIONS
from runs.serializers import Json
from runs.services.agentfile.export import ExportTooLarge, export_agent_version
from runs.services.agentfile.schema import SuggestedQuestion, ToolUseEntry
from runs.services.agents.manage import delete_agents, share_inline_prompt
from runs.services.agents.publish import get_latest_version, is_published
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.errors import AgentCycle, FieldError, SpecRefused
from runs.services.spec.freeze import freeze_agent, variables_of_agent
from runs.services.spec.inline_prompt import (
    extract_instructions,
    is_inline_prompt,
    list_library_prompts,
)
from runs.views.prompts.preview import build_first_request
from tools.audit.write import write_entry
from tools.definition.overrides import find_loosenings, parse_overrides
from tools.models import Tool

KindName = Annotated[str, Field(max_length=30)]
Slug = Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,80}$")]
MAX_TOOLS = 128


class AgentFields(SharingBody):
    """What can be changed of an agent; what is left out stays."""

    description: str = ""
    kind: KindName = "tool-calling"
    parameters: dict[str, Any] = {}
    """Sent to the model unchanged, such as `temperature`."""
    instructions: str | None = None
    """The agent's own prompt; empty for the built-in prompt of its kind."""
    prompt: Slug | None = None
    """A prompt of the library instead of instructions."""
    tools: Annotated[list[ToolUseEntry], Field(max_length=MAX_TOOLS)] = []
    """In the order in which the model sees them."""
    executor: ExecutorOptions = ExecutorOptions()
    """Limits and options."""
    memory: bool = False
    suggested_questions: Annotated[
        list[SuggestedQuestion], Field(max_length=MAX_SUGGESTED_QUESTIONS)
    ] = []
    is_offered: bool = False
    """Whether MCP clients find it as a tool."""
    continues_without_client: bool = False
    """Whether a run continues if the program that waits for it disconnects."""


class NewAgentBody(AgentFields):
    """The body of `POST /api/v1/agents`."""

    name: Name
    provider: Slug
    model: Annotated[str, Field(min_length=1, max_length=200)]
    memory: bool = True


class AgentBody(AgentFields):
    """The body of `PATCH /api/v1/agents/{id}`."""

    name: Name = ""
    provider: Slug = ""
    model: Annotated[str, Field(min_length=1, max_length=200)] = ""


class ExportQuery(Query):
    """What the file contains."""

    datasets: bool = False
    """Whether it has all datasets and evaluators of the agent's experiments, besides
    those of its gate."""


class ToolUseShape(Shape):
    """A tool or another agent that the agent uses."""

    tool: str | None
    agent: str | None
    policy: Literal["default", "allow", "ask", "deny"]
    overrides: dict[str, Any]


class DraftShape(Shape):
    """What an agent is made of, as it is edited."""

    parameters: dict[str, Any]
    instructions: str | None
    prompt: str | None
    tools: list[ToolUseShape]
    executor: dict[str, Any]
    memory: bool
    suggested_questions: list[str]
    is_offered: bool
    continues_without_client: bool


class AgentSummaryShape(DefinitionShape):
    """An agent in a list."""

    description: str
    kind: str
    provider: str
    model: str


class AgentShape(AgentSummaryShape):
    """An agent."""

    version: int | None
    """The newest published version, which runs use; null for none."""
    is_published: bool
    """Whether the draft equals that version."""
    inputs: list[str]
    """Variables that a run of the draft needs."""
    draft: DraftShape | None
    """Null if you may not edit the agent."""


class PreviewShape(Shape):
    """The first request of a run of the draft."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


def agent_summary(agent: Agent) -> Json:
    return {
        **definition_json(agent),
        "description": agent.description,
        "kind": agent.kind,
        "provider": agent.provider.slug,
        "model": agent.model,
    }


def agent_json(agent: Agent, user: User) -> Json:
    may_edit = user.is_superuser or agent.owner_id == user.pk
    newest = get_latest_version(agent)
    return {
        **agent_summary(agent),
        "version": newest.number if newest else None,
        "is_published": newest is not None and is_published(agent),
        "inputs": list(variables_of_agent(agent)),
        "draft": draft_json(agent) if may_edit else None,
    }


def draft_json(agent: Agent) -> Json:
    prompt = agent.prompt
    is_own = prompt is not None and is_inline_prompt(prompt, agent)
    options = ExecutorOptions.model_validate(agent.executor)
    return {
        "parameters": agent.parameters,
        "instructions": extract_instructions(prompt) if prompt and is_own else None,
        "prompt": prompt.slug if prompt and not is_own else None,
        "tools": [
            {
                "tool": use.tool.slug if use.tool else None,
                "agent": use.sub_agent.slug if use.sub_agent else None,
                "policy": use.policy,
                "overrides": use.overrides,
            }
            for use in agent.uses.select_related("tool", "sub_agent")
        ],
        "executor": options.model_dump(mode="json"),
        "memory": agent.memory,
        "suggested_questions": list(agent.suggested_questions),
        "is_offered": agent.is_offered,
        "continues_without_client": agent.continues_without_client,
    }


AGENTS = Definition("agent", Agent, agent_summary, agent_json, Q(is_playground=False))


def create_agent(request: HttpRequest, user: User, body: NewAgentBody) -> HttpResponse:
    """Create an agent as a draft; publish it to use it."""
    agent = Agent(owner=user, executor={}, memory=body.memory)
    with transaction.atomic():
        store_agent(agent, body, user)
    return AGENTS.respond(user, agent.pk, 201)


def change_agent(
    request: HttpRequest, user: User, pk: str, body: AgentBody
) -> HttpResponse:
    """Change the draft; what the body leaves out stays. Published versions stay."""
    with AGENTS.edit(request, user, pk) as agent:
        store_agent(agent, body, user)
    return AGENTS.respond(user, agent.pk)


def store_agent(agent: Agent, body: NewAgentBody | AgentBody, user: User) -> None:
    """Save the agent in the caller's transaction; raise a 422 if it could not run."""
    sent = body.model_fields_set
    columns = ("name", "description", "model", "parameters", "memory")
    for name in (*columns, "is_offered", "continues_without_client"):
        if name in sent:
            setattr(agent, name, getattr(body, name))
    if "suggested_questions" in sent:
        agent.suggested_questions = list(body.suggested_questions)
    if "executor" in sent:
        agent.executor = body.executor.model_dump(mode="json", exclude_defaults=True)
    if "kind" in sent:
        agent.kind = check_kind(body.kind)
    if "provider" in sent:
        agent.provider = find_provider(body.provider, agent, user)
    if body.prompt is not None:
        agent.prompt = find_prompt(body, user)
    elif "prompt" in sent:
        agent.prompt = None
    share_definition(agent, body)
    save_with_tools(agent, body, user)
    save_groups(agent, body)
    if "visibility" in sent:
        share_inline_prompt(agent)
    check_spec(agent)


def check_kind(kind: str) -> str:
    if kind not in AGENT_KINDS:
        known = ", ".join(AGENT_KINDS)
        raise field_problem("kind", f"Kind {kind!r} not found. Known kinds: {known}.")
    return kind


def find_provider(slug: str, agent: Agent, user: User) -> Provider:
    found = Provider.objects.usable_by(user).filter(slug=slug).first()
    if found is None and agent.pk and agent.provider.slug == slug:
        return agent.provider
    if found is None:
        raise field_problem("provider", f"Provider {slug!r} not found.")
    return found


def find_prompt(body: AgentFields, user: User) -> PromptTemplate:
    if body.instructions is not None:
        message = "Send `prompt` or `instructions`, not both."
        raise field_problem("prompt", message)
    found = list_library_prompts(user).filter(slug=body.prompt).first()
    if found is None:
        raise field_problem("prompt", f"Prompt {body.prompt!r} not found.")
    return found


def save_with_tools(agent: Agent, body: AgentFields, user: User) -> None:
    """Save the agent with its instructions and tools; raise a 422."""
    uses = [find_tool_use(place, use, user) for place, use in enumerate(body.tools)]
    keys = [(use.tool_id, use.sub_agent_id) for use in uses]
    if twice := [place for place, key in enumerate(keys) if key in keys[:place]]:
        raise field_problem(f"tools.{twice[0]}", "The agent has this tool already.")
    if "tools" not in body.model_fields_set:
        uses = list(agent.uses.all()) if agent.pk else []
    text = body.instructions
    try:
        save_agent(
            agent,
            uses=[ToolAssignment(u.tool_id, u.policy, u.sub_agent_id) for u in uses],
            instructions=clean_text(text) if text is not None else None,
        )
    except AgentCycle as error:
        raise field_problem("tools", str(error)) from None
    given = {(use.tool_id, use.sub_agent_id): use.overrides for use in uses}
    for row in agent.uses.all():
        overrides = given[row.tool_id, row.sub_agent_id]
        if row.overrides != overrides:
            row.overrides = overrides
            row.save(update_fields=["overrides"])


def find_tool_use(place: int, use: ToolUseEntry, user: User) -> AgentTool:
    """Return an unsaved row for a tool or agent that the agent is to use."""
    row = AgentTool(policy=use.policy, overrides=use.overrides)
    if use.tool is not None:
        row.tool = Tool.objects.usable_by(user).filter(slug=use.tool).first()
        if row.tool is None:
            raise field_problem(f"tools.{place}.tool", f"Tool {use.tool!r} not found.")
        for name, message in find_loosenings(parse_overrides(use.overrides), row.tool):
            raise field_problem(f"tools.{place}.overrides.{name}", message)
        return row
    row.sub_agent = Agent.objects.usable_by(user).filter(slug=use.agent).first()
    if row.sub_agent is None:
        raise field_problem(f"tools.{place}.agent", f"Agent {use.agent!r} not found.")
    return row


def check_spec(agent: Agent) -> None:
    """Raise a 422 with every reason why the agent could not run."""
    try:
        problems = find_spec_problems(freeze_agent(Agent.objects.get(pk=agent.pk)))
    except SpecRefused as error:
        raise ApiProblem(422, error.errors) from None
    if problems:
        found = [FieldError(name_field(one.field), one.message) for one in problems]
        raise ApiProblem(422, found)


def name_field(field: str) -> str:
    if field.startswith("prompt"):
        return "instructions"
    return field.removeprefix("model.") if field.startswith("model.") else field


def delete_agent(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete an agent to which nothing refers; others can be archived."""
    with AGENTS.edit(request, user, pk) as agent:
        if not delete_agents(Agent.objects.filter(pk=agent.pk)):
            message = "Runs or other rows refer to the agent. Archive it instead."
            raise field_problem("id", message, 409)
    return no_content()


def export_agent(
    request: HttpRequest, user: User, pk: str, query: ExportQuery
) -> HttpResponse:
    """The newest version, or the draft if there is none, as an agent file."""
    agent = AGENTS.require_editable(user, pk)
    try:
        text = export_agent_version(
            agent, get_latest_version(agent), datasets=query.datasets
        )
    except ExportTooLarge as refused:
        raise field_problem("datasets", str(refused)) from None
    write_entry("exported", "agent", agent, by=user)
    return HttpResponse(
        text,
        content_type="application/yaml",
        headers={"Cache-Control": "no-store"},
    )


def preview_agent(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """The exact first request of a run of the draft; inputs stay as `{name}`."""
    agent = AGENTS.require_editable(user, pk)
    first = build_first_request(freeze_agent(agent))
    if first is None:
        message = "A run would end before its first request."
        raise field_problem("executor", message, 409)
    sent = first.model_dump(mode="json")
    return json_response({"messages": sent["messages"], "tools": sent["tools"]})


ROUTES = [
    *build_common_routes(AGENTS, AgentShape, AgentSummaryShape),
    Route(
        "POST",
        "agents",
        create_agent,
        "Create an agent",
        AgentShape,
        scope="build",
        body=NewAgentBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "PATCH",
        "agents/{id}",
        change_agent,
        "Change an agent",
        AgentShape,
        scope="build",
        body=AgentBody,
        has_etag=True,
    ),
    Route(
        "DELETE",
        "agents/{id}",
        delete_agent,
        "Delete an agent",
        scope="build",
        status=204,
        errors=(409,),
        has_etag=True,
    ),
    Route(
        "GET",
        "agents/{id}/export",
        export_agent,
        "Export an agent",
        query=ExportQuery,
        media="application/yaml",
    ),
    Route(
        "GET",
        "agents/{id}/preview",
        preview_agent,
        "Preview the first request",
        PreviewShape,
        errors=(409,),
    ),
]
