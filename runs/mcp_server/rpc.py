"""JSON-RPC messages of the MCP endpoint, and the revisions that it speaks.

RpcError                a request is refused
"""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, ValidationError
from pydantic_core import to_json

from runs.api.bodies import refuse_ambiguous_json
from runs.api.problems import ApiProblem
from tools.mcp.wire import STATELESS_VERSION, UNSUPPORTED_VERSION, VERSIONS

Json = dict[str, Any]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
ENVELOPE = "io.modelcontextprotocol/"
"""Beginning of what each request of the stateless revision says about itself."""
MAX_ID_LENGTH = 100


class RpcError(Exception):
    """Raised while a request is answered; `data` is for the client's program."""

    def __init__(self, code: int, message: str, *, data: Json | None = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)

    def response(self, request_id: object, *, status: int) -> HttpResponse:
        error: Json = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        number = request_id if isinstance(request_id, int | str) else None
        return json_rpc_response({"id": number, "error": error}, status=status)


class RpcRequest(BaseModel):
    """One request; notifications have no `id`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: StrictInt | StrictStr
    method: str
    params: dict[str, Any] = {}
    is_stateless: bool = False
    """Whether it is of the revision without a handshake."""

    @property
    def meta(self) -> Json:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def progress_token(self) -> int | str | None:
        token = self.meta.get("progressToken")
        return token if isinstance(token, int | str) else None

    def result(self, result: Json, *, is_list: bool = False) -> Json:
        """Return the response; the stateless revision says what may be cached."""
        if self.is_stateless:
            kept = {"ttlMs": 0, "cacheScope": "private"} if is_list else {}
            result = {**result, "resultType": "complete", **kept}
        return {"jsonrpc": "2.0", "id": self.id, "result": result}


def parse_rpc_message(request: HttpRequest) -> Json:
    """Return the one message of a body; raise `RpcError`."""
    try:
        refuse_ambiguous_json(request.body)
        message = json.loads(request.body)
    except ApiProblem as problem:
        raise RpcError(PARSE_ERROR, str(problem)) from None
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The body is not JSON.") from None
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        raise RpcError(INVALID_REQUEST, "The body is not one request.")
    return message


def parse_rpc_request(request: HttpRequest, message: Json) -> RpcRequest:
    """Return the request, of a revision that is spoken here; raise `RpcError`."""
    try:
        found = RpcRequest.model_validate(message)
    except ValidationError:
        raise RpcError(INVALID_REQUEST, "The request is not valid.") from None
    if isinstance(found.id, str) and len(found.id) > MAX_ID_LENGTH:
        raise RpcError(INVALID_REQUEST, "The id of the request is too long.")
    version = request.headers.get("MCP-Protocol-Version", "")
    if version in VERSIONS:
        return found
    if f"{ENVELOPE}protocolVersion" in found.meta or version == STATELESS_VERSION:
        _check_envelope(request, found, version)
        return found.model_copy(update={"is_stateless": True})
    if version:
        raise unsupported_version(version)
    return found


def _check_envelope(request: HttpRequest, found: RpcRequest, version: str) -> None:
    """Raise if the headers, which gateways read, say something else than the body."""
    named = found.meta.get(f"{ENVELOPE}protocolVersion")
    if not isinstance(named, str) or f"{ENVELOPE}clientCapabilities" not in found.meta:
        raise RpcError(
            INVALID_PARAMS,
            f"params._meta needs {ENVELOPE}protocolVersion and "
            f"{ENVELOPE}clientCapabilities.",
        )
    expected = {"MCP-Protocol-Version": named, "Mcp-Method": found.method}
    if found.method == "tools/call":
        expected["Mcp-Name"] = str(found.params.get("name"))
    for header, value in expected.items():
        if request.headers.get(header) != value:
            raise RpcError(
                HEADER_MISMATCH, f"The header {header} does not match the body."
            )
    if named != STATELESS_VERSION:
        raise unsupported_version(version)


def unsupported_version(version: str) -> RpcError:
    supported = [STATELESS_VERSION, *VERSIONS]
    return RpcError(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version.",
        data={"supported": supported, "requested": version},
    )


def json_rpc_response(shape: Json, *, status: int = 200) -> HttpResponse:
    return HttpResponse(
        to_json({"jsonrpc": "2.0", **shape}, inf_nan_mode="null"),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
