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
        if isinstance(servers, list) and servers and isinstance(servers[0], dict):
            address = fill_server_variables(servers[0])
            if base and urlsplit(address).netloc:
                return base  # what a person typed counts before the document
            whole = urljoin(base, address) if base else address
            if urlsplit(whole).scheme in ("http", "https"):
                return whole
    if base:
        return base
    raise UnsupportedOperation(_("the document has no server; enter the server URL"))


def fill_server_variables(server: dict[str, Any]) -> str:
    """Return a server's address with the defaults of its variables."""
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        one = known.get(match[1])
        return str(one.get("default", "")) if isinstance(one, dict) else match[0]

    return SERVER_VARIABLE.sub(default, str(server.get("url", "")))
