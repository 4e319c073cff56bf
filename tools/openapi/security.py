"""Find the credential that an OpenAPI document requires."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from tools.models import Credential
from tools.openapi.document import OpenApiDocument, UnresolvedReference
from tools.text.storable import replace_unstorable

MAX_NAME = 200


class RequiredCredential(NamedTuple):
    """A way to authenticate that tools support."""

    kind: str
    name: str
    """Of the header or parameter."""


def find_required_credential(document: OpenApiDocument) -> RequiredCredential | None:
    """Return the first security scheme that a credential supports, or None."""
    for scheme in iter_security_schemes(document):
        kind, place = str(scheme.get("type")), str(scheme.get("in"))
        if kind == "apiKey" and place in ("header", "query"):
            return RequiredCredential(
                place, replace_unstorable(str(scheme.get("name", ""))[:MAX_NAME])
            )
        if kind == "apiKey" and place == "cookie":
            return RequiredCredential(Credential.Kind.HEADER, "Cookie")
        if kind == "http" and str(scheme.get("scheme", "")).lower() == "basic":
            return RequiredCredential(Credential.Kind.BASIC, "")
        if kind in ("http", "oauth2", "openIdConnect"):
            return RequiredCredential(Credential.Kind.BEARER, "")
    return None


def iter_security_schemes(document: OpenApiDocument) -> Iterator[dict[str, Any]]:
    """Yield the schemes that the document itself defines."""
    components = document.body.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else {}
    for raw in schemes.values() if isinstance(schemes, dict) else ():
        with suppress(UnresolvedReference):
            yield document.resolve(raw)
