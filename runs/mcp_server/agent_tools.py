"""Agents as tools of the MCP endpoint: what is offered, and what a call starts."""

import hashlib
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from runs.engine.types import AgentSpec
from runs.live.asgi import live_app
from runs.live.deferred import DeferredResponse
from runs.live.run_feed import follow_run
from runs.mcp_server.call_relay import CallRelay, RelayedCall
from runs.mcp_server.results import tool_error
from runs.mcp_server.rpc import INVALID_PARAMS, RpcError, RpcRequest
from runs.models import Agent, AgentVersion, ApiToken, Run
from runs.services.errors import RunsError, TooManyRuns
from runs.services.runs.idempotency import start_run_once
from runs.services.runs.start import FrozenAgent, freeze_newest_version, start_run
from runs.services.spec.freeze import build_agent_tool_spec
from runs.store.specs import load_spec

Json = dict[str, Any]
SESSION_HEADER = "Mcp-Session-Id"


def list_agent_tools(user: User) -> list[Json]:
    """Return the agents that are offered to programs of the user."""
    agents = get_offered_agents(user).order_by("slug")
    return [agent_tool_json(agent) for agent in agents.select_related("prompt")]


def get_offered_agents(user: User) -> Any:
    return Agent.objects.usable_by(user).filter(is_offered=True)


def agent_tool_json(agent: Agent) -> Json:
    spec = build_agent_tool_spec(agent)
    shape: Json = {
        "name": spec.name,
        "title": agent.name,
        "description": spec.description,
        "inputSchema": spec.args_schema,
        "annotations": {"title": agent.name, "openWorldHint": True},
    }
    schema = find_object_schema(agent)
    if schema is not None:
        shape["outputSchema"] = schema
    return shape


def find_object_schema(agent: Agent) -> Json | None:
    """Return the schema of the published answer; None if it is not an object."""
    version: AgentVersion | None = agent.versions.select_related("spec").first()
    if version is None:
        schema = agent.executor.get("output_schema")
        return schema if is_object_schema(schema) else None
    return get_object_schema(load_spec(version.spec))


def get_object_schema(spec: AgentSpec) -> Json | None:
    schema = spec.executor.output_schema
    return schema if is_object_schema(schema) else None


def is_object_schema(schema: Any) -> bool:
    """Whether every revision of the protocol can carry its values."""
    return isinstance(schema, dict) and schema.get("type") == "object"


def find_offered_agent(user: User, name: str) -> Agent:
    """Return the agent that a tool's name stands for; raise `RpcError`."""
    agents = get_offered_agents(user) if "\0" not in name else Agent.objects.none()
    for agent in agents.filter(slug__startswith=name):
        if build_agent_tool_spec(agent).name == name:
            found: Agent = agent
            return found
    raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]}")


def call_agent_tool(
    http: HttpRequest, token: ApiToken, request: RpcRequest
) -> Json | DeferredResponse:
    """Start a run of the agent and follow it; return an error if none is started."""
    name, arguments = read_call(request)
    agent = find_offered_agent(token.user, name)
    if live_app.has_too_many_streams(token.user_id):
        return tool_error("You have too many open requests. Try again later.")
    try:
        frozen = freeze_newest_version(agent)
        run = start_called_run(http, token, request, agent, frozen, arguments)
    except TooManyRuns as error:
        return tool_error(f"{error} Wait {error.retry_seconds} seconds.")
    except RunsError as error:
        return tool_error(str(error))
    relay = CallRelay(
        follow_run(http, token.user, run.pk),
        RelayedCall(
            request,
            has_schema=get_object_schema(frozen.spec) is not None,
            cancels=not agent.continues_without_client,
        ),
    )
    return relay.respond(stream="text/event-stream" in http.headers.get("Accept", ""))


def start_called_run(
    http: HttpRequest,
    token: ApiToken,
    request: RpcRequest,
    agent: Agent,
    frozen: FrozenAgent,
    arguments: Json,
) -> Run:
    """Start the run of a call, once if the request is sent again in its session."""

    def start() -> Run:
        return start_run(
            agent,
            by=token.user,
            inputs=arguments,
            source=Run.Source.API,
            frozen=frozen,
        )

    return start_run_once(
        start,
        user=token.user,
        key=build_call_key(http, request.id),
        body_digest=hashlib.sha256(http.body).hexdigest(),
    ).run


def build_call_key(http: HttpRequest, request_id: int | str) -> str | None:
    """Return the key under which a call of a session is found again."""
    session = http.headers.get(SESSION_HEADER, "")
    is_known = session.isalnum() and len(session) <= MAX_SESSION_LENGTH
    return f"mcp:{session}:{request_id!r}" if is_known else None


MAX_SESSION_LENGTH = 64


def read_call(request: RpcRequest) -> tuple[str, Json]:
    """Return name and arguments of a call; raise `RpcError`."""
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "The name of the tool is missing.")
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "The arguments are not an object.")
    return name, arguments or {}
