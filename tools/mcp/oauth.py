"""Signing in to an MCP server: OAuth 2.1 with discovery, registration and PKCE.

RFC 9728 (metadata of the server), 8414 (of its authorization server), 7591
(registration), 7636 (PKCE), 8707 (resource). Requests go out through `send`.
"""

import hashlib
import json
import re
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.mcp.errors import McpFailed, shorten_server_text
from tools.mcp.wire import CLIENT_INFO, VERSIONS, build_rpc_request
from tools.net.address_flaw import find_address_flaw
from tools.net.http_exchange import NotJsonResponse, Request, Response

Send = Callable[[Request], Response]
M = TypeVar("M", bound=BaseModel)

CHALLENGE = r"\b{}=(?:\"([^\"]*)\"|([^\s,]+))"
MAX_TOKEN = 16_000
"""Characters of an access token."""


class SignInFailed(McpFailed):
    """Signing in did not work."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        self.is_final = is_final
        """Whether the authorization server will never accept the same again."""
        super().__init__(f"Sign-in failed: {why.rstrip('.')}.")


class Wire(BaseModel):
    """What a server says; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ResourceMetadata(Wire):
    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] | None = None


class ServerMetadata(Wire):
    """Of an authorization server."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    scopes_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Client(Wire):
    """Who we are to an authorization server."""

    client_id: str = Field(min_length=1, max_length=500)
    client_secret: str = Field(default="", repr=False)
    token_endpoint_auth_method: str = Field(default="", max_length=30)


class Tokens(Wire):
    access_token: str = Field(min_length=1, max_length=MAX_TOKEN, pattern=r"^[!-~]+$")
    expires_in: float | None = Field(default=None, allow_inf_nan=False)
    refresh_token: str = Field(default="", repr=False)


class Plan(Wire):
    """How to sign in to one server."""

    resource: str
    scope: str
    server: ServerMetadata


def plan_sign_in(url: str, send: Send) -> Plan:
    """Return how to sign in to the MCP server at `url`; raise `ToolFailed`."""
    challenge = get_challenge(url, send)
    resource = find_metadata(
        list_resource_addresses(url, challenge.get("resource_metadata", "")),
        ResourceMetadata,
        send,
    )
    if resource is None or not resource.authorization_servers:
        raise SignInFailed("the server does not say where to sign in with OAuth")
    if not covers(resource.resource, url):
        raise SignInFailed(
            f"the server says that it is {resource.resource!r}, which is another one"
        )
    issuer = resource.authorization_servers[0]
    server = find_metadata(list_issuer_addresses(issuer), ServerMetadata, send)
    if server is None:
        raise SignInFailed(f"no description of the authorization server {issuer!r}")
    check_server(server, issuer, is_encrypted=url.startswith("https:"))
    scopes = challenge.get("scope", "").split() or list(resource.scopes_supported or ())
    if "offline_access" in (server.scopes_supported or ()):
        scopes.append("offline_access")
    scope = " ".join(dict.fromkeys(scopes))
    return Plan(resource=resource.resource, scope=scope, server=server)


def get_challenge(url: str, send: Send) -> dict[str, str]:
    """Return what the server says of signing in when it is asked without a token."""
    hello = {"protocolVersion": VERSIONS[0], "capabilities": {}}
    body = build_rpc_request(1, "initialize", {**hello, "clientInfo": CLIENT_INFO})
    headers = {"accept": "application/json, text/event-stream"}
    message = send(json_request(url, body, headers)).headers.get("www-authenticate", "")
    found = {}
    for name in ("resource_metadata", "scope"):
        if match := re.search(CHALLENGE.format(name), message):
            found[name] = match[1] or match[2] or ""
    return found


def list_resource_addresses(url: str, message: str) -> Iterator[str]:
    if message:
        yield message
    parts = urlsplit(url)
    well_known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    if path := parts.path.rstrip("/"):
        yield f"{well_known}{path}"
    yield well_known


def list_issuer_addresses(issuer: str) -> Iterator[str]:
    """Yield where the metadata of an authorization server may be."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    for name in ("oauth-authorization-server", "openid-configuration"):
        yield f"{origin}/.well-known/{name}{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def find_metadata(addresses: Iterator[str], model: type[M], send: Send) -> M | None:
    """Return the first document that is found."""
    for address in addresses:
        if find_address_flaw(address):
            continue
        response = send(Request(address, headers={"accept": "application/json"}))
        if response.status == 200:
            return parse_oauth_json(response, model)
    return None


def covers(resource: str, url: str) -> bool:
    """Whether the address `url` is the resource, or below it."""
    whole, part = urlsplit(resource), urlsplit(url)
    if (whole.scheme, whole.netloc.lower()) != (part.scheme, part.netloc.lower()):
        return False
    path = whole.path.rstrip("/")
    return part.path.rstrip("/") == path or part.path.startswith(f"{path}/")


def check_server(server: ServerMetadata, issuer: str, *, is_encrypted: bool) -> None:
    """Refuse an authorization server that cannot be used safely."""
    if server.issuer.rstrip("/") != issuer.rstrip("/"):
        raise SignInFailed(
            f"the authorization server calls itself {server.issuer!r}, not {issuer!r}"
        )
    addresses = [server.authorization_endpoint, server.token_endpoint]
    if server.registration_endpoint:
        addresses.append(server.registration_endpoint)
    for address in addresses:
        if flaw := find_address_flaw(address):
            raise SignInFailed(f"the address {address!r} cannot be used: {flaw}")
        if is_encrypted and not address.startswith("https:"):
            raise SignInFailed(f"the address {address!r} is not encrypted")
    if "S256" not in server.code_challenge_methods_supported:
        raise SignInFailed("the authorization server does not support PKCE with S256")


def register_client(server: ServerMetadata, redirect_uri: str, send: Send) -> Client:
    """Return a client that the authorization server has just made for us."""
    if not server.registration_endpoint:
        raise SignInFailed(
            "the authorization server registers no clients by itself. Register one "
            f"there with the redirect URI {redirect_uri}, and enter its client ID here"
        )
    methods = server.token_endpoint_auth_methods_supported
    body = {
        "client_name": "Agentsite",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": choose_client_auth(methods, has_secret=False),
    }
    response = send(json_request(server.registration_endpoint, body, {}))
    check_success(response, "registering a client")
    client = parse_oauth_json(response, Client)
    if client.token_endpoint_auth_method:
        return client
    method = "client_secret_basic" if client.client_secret else "none"
    return client.model_copy(update={"token_endpoint_auth_method": method})


def choose_client_auth(methods: tuple[str, ...], *, has_secret: bool) -> str:
    """Return how to prove who we are: what the authorization server names first."""
    known = ("client_secret_basic", "client_secret_post")
    if not has_secret and ("none" in methods or not set(known) & set(methods)):
        return "none"
    return next((one for one in methods if one in known), known[0])


def create_verifier() -> str:
    return secrets.token_urlsafe(48)


def build_authorization_url(
    plan: Plan, client: Client, *, redirect_uri: str, state: str, verifier: str
) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": plan.resource,
        **({"scope": plan.scope} if plan.scope else {}),
    }
    address = plan.server.authorization_endpoint
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"


def request_tokens(
    token_endpoint: str, client: Client, grant: Mapping[str, str], send: Send
) -> Tokens:
    """Return the tokens for a code or a refresh token; raise `ToolFailed`."""
    form = {**grant, "client_id": client.client_id}
    headers = {"accept": "application/json"}
    if client.token_endpoint_auth_method == "client_secret_basic":  # noqa: S105  # a name
        pair = f"{quote(client.client_id)}:{quote(client.client_secret)}"
        headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    elif client.client_secret:
        form["client_secret"] = client.client_secret
    headers["content-type"] = "application/x-www-form-urlencoded"
    content = urlencode(form).encode()
    response = send(Request(token_endpoint, "POST", headers, content))
    check_success(response, "getting a token")
    return parse_oauth_json(response, Tokens)


def json_request(url: str, body: Any, headers: Mapping[str, str]) -> Request:
    content = json.dumps(body).encode()
    return Request(
        url, "POST", {"content-type": "application/json", **headers}, content
    )


def check_success(response: Response, what: str) -> None:
    """Raise what an authorization server says of its refusal."""
    if response.status in (200, 201):
        return
    words, code = "", ""
    try:
        match response.json():
            case {"error": str(code), "error_description": str(message)}:
                words = f"{code} ({message})"
            case {"error": str(code)}:
                words = code
    except NotJsonResponse:
        words = response.text
    raise SignInFailed(
        f"{what}: {response.where} answered {response.status} "
        f"{shorten_server_text(words)}".rstrip(),
        is_final=code in ("invalid_grant", "invalid_client", "unauthorized_client"),
    )


def parse_oauth_json(response: Response, model: type[M]) -> M:
    try:
        return model.model_validate(response.json())
    except (ValidationError, NotJsonResponse):
        what = "an answer without what OAuth requires"
        raise SignInFailed(f"{response.where} gave {what}") from None
