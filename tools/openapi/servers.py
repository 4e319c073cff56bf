"""The server of an operation."""

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.utils.translation import gettext as _

from tools.openapi.document import OpenApiDocument
from tools.openapi.draft import UnsupportedOperation

SERVER_VARIABLE = re.compile(r"\{([^{}/]+)\}")


def find_server_url(
    document: OpenApiDocument, item: dict[str, Any], raw: dict[str, Any], base: str
) -> str:
    """Return the address of the server, variables filled with their defaults."""
    for source in (raw, item, document.body):
        servers = source.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else None
        if not isinstance(first, dict):
            continue
        if url := resolve_server(fill_server_variables(first), base):
            return url
    if base:
        return base
    raise UnsupportedOperation(_("the document has no server; enter the server URL"))


def resolve_server(address: str, base: str) -> str:
    """Return the URL of a server, empty if it has no host or cannot be parsed."""
    try:
        if base and urlsplit(address).netloc:
            return base  # what a person entered replaces the server of the document
        url = urljoin(base, address) if base else address
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:  # such as https://[x
        return ""


def fill_server_variables(server: dict[str, Any]) -> str:
    """Return a server's address with the defaults of its variables."""
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        one = known.get(match[1])
        return str(one.get("default", "")) if isinstance(one, dict) else match[0]

    return SERVER_VARIABLE.sub(default, str(server.get("url", "")))
