"""What clients read to find out how to sign in (RFC 9728, RFC 8414)."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

Json = dict[str, Any]

RESOURCES = {
    "mcp": ("read", "run"),
    "mcp/inspect": ("read",),
    "mcp/build": ("read", "build"),
}
"""Addresses that clients sign in to, with the scopes that each needs."""
SCOPES = ("read", "run", "build")
"""All of them."""

ERRORS = {"missing_api_key": "", "missing_scope": "insufficient_scope"}
"""Codes of RFC 6750 for problems of a token; `invalid_token` for all others."""


def describe_resource(request: HttpRequest, path: str) -> Json:
    return {
        "resource": request.build_absolute_uri(f"/{path}"),
        "resource_name": "Agentsite",
        "authorization_servers": [get_issuer(request)],
        "scopes_supported": list(RESOURCES[path]),
        "bearer_methods_supported": ["header"],
    }


def describe_authorization_server(request: HttpRequest) -> Json:
    def address(name: str) -> str:
        return request.build_absolute_uri(reverse(name))

    return {
        "issuer": get_issuer(request),
        "authorization_endpoint": address("oauth-authorize"),
        "token_endpoint": address("oauth-token"),
        "registration_endpoint": address("oauth-register"),
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def get_issuer(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")


def build_challenge(request: HttpRequest, path: str, *, problem: str) -> str:
    """Return `WWW-Authenticate` for a request whose token is missing or refused."""
    address = request.build_absolute_uri(
        f"/.well-known/oauth-protected-resource/{path}"
    )
    given = {
        "realm": "agentsite",
        "error": ERRORS.get(problem, "invalid_token"),
        "scope": " ".join(RESOURCES[path]),
        "resource_metadata": address,
    }
    return "Bearer " + ", ".join(
        f'{key}="{text}"' for key, text in given.items() if text
    )
