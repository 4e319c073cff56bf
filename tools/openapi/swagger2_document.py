"""What Swagger 2.0 says of a whole document, as OpenAPI 3.0 says it."""

from typing import Any


def upgrade_swagger2(body: dict[str, Any]) -> dict[str, Any]:
    """Return the document with servers and security schemes as in 3.0."""
    defined = body.get("securityDefinitions")
    schemes = {
        str(name): upgrade_security_scheme(one)
        for name, one in (defined.items() if isinstance(defined, dict) else ())
    }
    return {
        **body,
        "servers": list_servers(body),
        "components": {"securitySchemes": schemes},
    }


def upgrade_security_scheme(scheme: Any) -> Any:
    """Return a security scheme; only that of basic authentication differs."""
    if isinstance(scheme, dict) and scheme.get("type") == "basic":
        return {**scheme, "type": "http", "scheme": "basic"}
    return scheme


def list_servers(body: dict[str, Any]) -> list[dict[str, str]]:
    """Return the server that scheme, host and base path name; https comes first."""
    host, path = str(body.get("host") or ""), str(body.get("basePath") or "/")
    path = f"/{path.lstrip('/')}"
    if not host:
        return [{"url": path}]
    schemes = body.get("schemes")
    named = schemes if isinstance(schemes, list) else []
    scheme = "http" if "http" in named and "https" not in named else "https"
    return [{"url": f"{scheme}://{host}{path}"}]
