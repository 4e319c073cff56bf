"""What credential an OpenAPI document asks for."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from tools.models import Credential
from tools.openapi.document import Document, InAnotherFile
from tools.storable import storable

MAX_NAME = 200


class Wanted(NamedTuple):
    """A way to sign in that tools can use."""

    kind: str
    name: str
    """Of the header or parameter."""


def credential_of(document: Document) -> Wanted | None:
    """Return the first security scheme that a credential can serve, or None."""
    for scheme in schemes_of(document):
        kind, place = str(scheme.get("type")), str(scheme.get("in"))
        if kind == "apiKey" and place in ("header", "query"):
            return Wanted(place, storable(str(scheme.get("name", ""))[:MAX_NAME]))
        if kind == "http" and str(scheme.get("scheme", "")).lower() == "basic":
            return Wanted(Credential.Kind.BASIC, "")
        if kind in ("http", "oauth2", "openIdConnect"):
            return Wanted(Credential.Kind.BEARER, "")
    return None


def schemes_of(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the schemes that are in the document itself."""
    components = document.body.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else {}
    for raw in schemes.values() if isinstance(schemes, dict) else ():
        with suppress(InAnotherFile):
            yield document.resolved(raw)
