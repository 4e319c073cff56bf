"""Tools that create, change and publish agents, with the bodies of the REST API."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from runs.api.definitions.agent_versions import PublishBody, publish_agent_draft
from runs.api.definitions.agents import (
    AgentBody,
    NewAgentBody,
    Slug,
    agent_json,
    change_agent,
    create_agent,
)
from runs.api.problems import ApiProblem, field_problem
from runs.mcp_server.inspect_tools import describe_mistakes
from runs.mcp_server.results import tool_error, tool_result
from runs.mcp_server.rpc import INVALID_PARAMS, RpcError
from runs.models import Agent, Provider
from tools.models import Tool

Json = dict[str, Any]
AGENT = "agent"
"""The argument that names an agent; all others are fields of a body."""


class NoArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentArguments(NoArguments):
    agent: Slug


class ChangeArguments(AgentBody):
    agent: Slug


class PublishArguments(PublishBody):
    agent: Slug


class BuildTool(NamedTuple):
    description: str
    arguments: type[BaseModel]
    build: Callable[[HttpRequest, User, Any], Json]
    is_read_only: bool = False


def list_build_tools() -> list[Json]:
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.arguments.model_json_schema(),
            "annotations": {
                "readOnlyHint": tool.is_read_only,
                "destructiveHint": False,
                "openWorldHint": False,
            },
        }
        for name, tool in BUILD_TOOLS.items()
    ]


def call_build_tool(
    request: HttpRequest, user: User, name: str, arguments: Json
) -> Json:
    """Return the result of a call; raise `RpcError` for an unknown tool."""
    tool = BUILD_TOOLS.get(name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]}")
    try:
        made = tool.build(request, user, tool.arguments.model_validate(arguments))
    except ValidationError as error:
        return tool_error("; ".join(describe_mistakes(error)))
    except ApiProblem as problem:
        fields = [f"{one.field}: {one.message}" for one in problem.errors]
        return tool_error("; ".join(fields) or str(problem))
    return tool_result(json.dumps(made, ensure_ascii=False), made)


def list_parts(request: HttpRequest, user: User, given: NoArguments) -> Json:
    providers = Provider.objects.usable_by(user).order_by("slug")
    tools = Tool.objects.usable_by(user).order_by("slug")
    return {
        "providers": [{"slug": one.slug, "name": one.name} for one in providers],
        "tools": [
            {"slug": one.slug, "name": one.name, "description": one.description}
            for one in tools
        ],
    }


def read_draft(request: HttpRequest, user: User, given: AgentArguments) -> Json:
    return agent_json(find_agent(user, given.agent), user)


def create_draft(request: HttpRequest, user: User, given: NewAgentBody) -> Json:
    return load_response_json(create_agent(request, user, given))


def change_draft(request: HttpRequest, user: User, given: ChangeArguments) -> Json:
    body = AgentBody.model_validate(get_sent_fields(given))
    return load_response_json(
        change_agent(request, user, find_key(user, given.agent), body)
    )


def publish_draft(request: HttpRequest, user: User, given: PublishArguments) -> Json:
    body = PublishBody.model_validate(get_sent_fields(given))
    key = find_key(user, given.agent)
    return load_response_json(publish_agent_draft(request, user, key, body))


def get_sent_fields(given: BaseModel) -> Json:
    """Return the fields that the client has sent, without the agent."""
    return given.model_dump(exclude_unset=True, exclude={AGENT})


def find_key(user: User, slug: str) -> str:
    return str(find_agent(user, slug).pk)


def find_agent(user: User, slug: str) -> Agent:
    found = Agent.objects.visible_to(user).filter(slug=slug, is_playground=False)
    agent = found.select_related("provider", "prompt", "owner").first()
    if agent is None:
        raise field_problem(AGENT, f"Agent {slug} not found.", 404)
    return agent


def load_response_json(response: HttpResponse) -> Json:
    found: Json = json.loads(response.content)
    return found


BUILD_TOOLS = {
    "list_parts": BuildTool(
        "List the providers and tools that agents can be made of, by their slugs.",
        NoArguments,
        list_parts,
        is_read_only=True,
    ),
    "read_agent": BuildTool(
        "Read an agent with its draft.", AgentArguments, read_draft, is_read_only=True
    ),
    "create_agent": BuildTool(
        "Create an agent as a draft, which runs only after it is published.",
        NewAgentBody,
        create_draft,
    ),
    "change_agent": BuildTool(
        "Change the draft of an agent. What is left out and published versions stay.",
        ChangeArguments,
        change_draft,
    ),
    "publish_agent": BuildTool(
        "Publish the draft as a new version, which runs use from now on.",
        PublishArguments,
        publish_draft,
    ),
}
