"""The MCP endpoint: agents as tools, and tools that look at runs and build agents.

Streamable HTTP without state: each POST has its token, and nothing is kept between
two of them but the runs.
"""

import logging
import secrets
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from structlog.contextvars import bind_contextvars

from runs.api.problems import describe_body_limit
from runs.mcp_server.agent_tools import (
    SESSION_HEADER,
    build_call_key,
    call_agent_tool,
    list_agent_tools,
    read_call,
)
from runs.mcp_server.build_tools import call_build_tool, list_build_tools
from runs.mcp_server.inspect_tools import call_inspection_tool, list_inspection_tools
from runs.mcp_server.rpc import (
    ENVELOPE,
    METHOD_NOT_FOUND,
    RpcError,
    RpcRequest,
    json_rpc_response,
    parse_rpc_message,
    parse_rpc_request,
)
from runs.models import ApiToken, IdempotencyKey
from runs.oauth.metadata import build_challenge
from runs.openai.dispatch import authenticate_bearer, refuse_method
from runs.openai.errors import OpenAiError
from runs.services.runs.cancel import cancel_run
from tools.audit.actor import Way, act_as
from tools.mcp.wire import STATELESS_VERSION, VERSIONS

Json = dict[str, Any]
SERVER = {"name": "agentsite", "title": "Agentsite", "version": "1"}
CAPABILITIES: Json = {"tools": {}}
CANCELED = "notifications/cancelled"

logger = logging.getLogger(__name__)


class Toolset(Protocol):
    """The tools behind one address."""

    path: str
    instructions: str
    call_scopes: tuple[str, ...]

    def list_tools(self, user: User) -> list[Json]: ...

    def call_tool(
        self, http: HttpRequest, token: ApiToken, request: RpcRequest
    ) -> Json | HttpResponse: ...


class AgentToolset:
    """Agents that are offered to programs."""

    path = "mcp"
    instructions = "Each tool is an agent. A call runs it and returns its answer."
    call_scopes: tuple[str, ...] = ("run", "read")

    def list_tools(self, user: User) -> list[Json]:
        return list_agent_tools(user)

    def call_tool(
        self, http: HttpRequest, token: ApiToken, request: RpcRequest
    ) -> Json | HttpResponse:
        return call_agent_tool(http, token, request)


class InspectionToolset:
    """Tools that look at agents and runs, and change nothing."""

    path = "mcp/inspect"
    instructions = "Look at agents and runs: what ran, what it did, why it failed."
    call_scopes: tuple[str, ...] = ("read",)

    def list_tools(self, user: User) -> list[Json]:
        return list_inspection_tools()

    def call_tool(
        self, http: HttpRequest, token: ApiToken, request: RpcRequest
    ) -> Json | HttpResponse:
        return call_inspection_tool(token.user, *read_call(request))


class BuildToolset:
    """Tools that create, change and publish agents."""

    path = "mcp/build"
    instructions = "Build agents: create or change a draft, then publish it."
    call_scopes: tuple[str, ...] = ("read", "build")

    def list_tools(self, user: User) -> list[Json]:
        return list_build_tools()

    def call_tool(
        self, http: HttpRequest, token: ApiToken, request: RpcRequest
    ) -> Json | HttpResponse:
        return call_build_tool(http, token.user, *read_call(request))


def mcp_view(toolset: Toolset) -> Callable[[HttpRequest], HttpResponse]:
    @csrf_exempt
    @login_not_required
    def view(request: HttpRequest) -> HttpResponse:
        try:
            check_origin(request)
            token = authenticate_bearer(request, ("read",))
            if request.method != "POST":
                raise refuse_method(request, ["POST"])
            bind_contextvars(user=token.user_id)
            with translation.override("en"), act_as(token.user, way=Way.API):
                return answer_message(request, token, toolset)
        except OpenAiError as error:
            return add_challenge(request, toolset.path, error).response()
        except RequestDataTooBig:
            return refuse_rpc(413, describe_body_limit())
        except DatabaseError:
            logger.exception("MCP endpoint: the database did not answer")
            return refuse_rpc(503, "Database unavailable. Try again later.")
        except Exception:  # top-level handler: every error gets the same shape
            logger.exception("%s %s failed", request.method, request.path)
            return refuse_rpc(500, "Internal server error.")

    return view


def check_origin(request: HttpRequest) -> None:
    """Refuse requests that pages of other sites send, as the protocol demands."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.get_host():
        raise OpenAiError(
            "Requests from pages of other sites are refused.",
            code="wrong_origin",
            status=403,
        )


def add_challenge(request: HttpRequest, path: str, error: OpenAiError) -> OpenAiError:
    """Let the client of a refused token find out how to sign in."""
    name = "WWW-Authenticate"
    if name in error.headers:
        error.headers[name] = build_challenge(request, path, problem=error.code)
    return error


def refuse_rpc(status: int, message: str) -> HttpResponse:
    error = {"code": -32603, "message": message}
    return json_rpc_response({"id": None, "error": error}, status=status)


def answer_message(
    http: HttpRequest, token: ApiToken, toolset: Toolset
) -> HttpResponse:
    """Answer a request; a notification is only taken note of."""
    message: Json = {}
    try:
        message = parse_rpc_message(http)
        if "id" not in message:
            take_notification(http, token, message)
            return HttpResponse(status=202)
        request = parse_rpc_request(http, message)
    except RpcError as error:
        return error.response(message.get("id"), status=400)
    try:
        return answer_request(http, token, toolset, request)
    except RpcError as error:
        is_missing = error.code == METHOD_NOT_FOUND
        status = (404 if is_missing else 400) if request.is_stateless else 200
        return error.response(request.id, status=status)


def answer_request(
    http: HttpRequest, token: ApiToken, toolset: Toolset, request: RpcRequest
) -> HttpResponse:
    match request.method:
        case "initialize" if not request.is_stateless:
            response = json_rpc_response(request.result(greet(request, toolset)))
            response[SESSION_HEADER] = secrets.token_hex(16)
            return response
        case "server/discover" if request.is_stateless:
            result = describe_mcp_server(toolset)
            return json_rpc_response(request.result(result, is_list=True))
        case "ping" if not request.is_stateless:
            return json_rpc_response(request.result({}))
        case "tools/list":
            result = {"tools": toolset.list_tools(token.user)}
            return json_rpc_response(request.result(result, is_list=True))
        case "tools/call":
            authenticate_bearer(http, toolset.call_scopes)
            answer = toolset.call_tool(http, token, request)
            if isinstance(answer, HttpResponse):
                return answer
            return json_rpc_response(request.result(answer))
    raise RpcError(METHOD_NOT_FOUND, f"Unknown method: {request.method[:100]}")


def greet(request: RpcRequest, toolset: Toolset) -> Json:
    asked = request.params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": toolset.instructions,
    }


def describe_mcp_server(toolset: Toolset) -> Json:
    """Return what a client of the stateless revision discovers."""
    return {
        "supportedVersions": [STATELESS_VERSION, *VERSIONS],
        "capabilities": CAPABILITIES,
        "instructions": toolset.instructions,
        "_meta": {f"{ENVELOPE}serverInfo": SERVER},
    }


def take_notification(http: HttpRequest, token: ApiToken, message: Json) -> None:
    """Cancel the run of a call that its client has given up; nothing else is done."""
    params = message.get("params")
    number = params.get("requestId") if isinstance(params, dict) else None
    if message["method"] != CANCELED or not isinstance(number, int | str):
        return
    authenticate_bearer(http, ("run", "read"))
    key = build_call_key(http, number)
    calls = IdempotencyKey.objects.filter(user=token.user, key=key or "")
    for call in calls.exclude(run=None).select_related("run"):
        cancel_run(call.run, by=token.user)  # type: ignore[arg-type]  # excluded above
