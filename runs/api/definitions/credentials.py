"""Credentials in the API; a secret is written and never read."""

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from pydantic import Field

from runs.api.definitions.common import (
    Definition,
    DefinitionQuery,
    DefinitionShape,
    Name,
    SharingBody,
    definition_json,
    list_definitions,
)
from runs.api.definitions.staff_rows import (
    can_see_details,
    delete_staff_row,
    require_changeable,
    require_right,
    save_by_form,
)
from runs.api.dispatch import no_content
from runs.api.queries import Page
from runs.api.route import Route
from runs.serializers import Json
from tools.forms.credential import CredentialForm
from tools.models import Credential

CredentialKind = Literal["header", "bearer", "basic", "query"]
CredentialHosts = Annotated[
    list[Annotated[str, Field(max_length=300)]], Field(min_length=1, max_length=100)
]
CredentialSecret = Annotated[str, Field(min_length=1, max_length=8000)]
COLUMNS = ("name", "kind", "field", "hosts", "visibility")


class CredentialShape(DefinitionShape):
    """A secret, which is never shown, and where it may be sent."""

    kind: CredentialKind
    field: str | None
    """Null unless you may see credentials in the administration, like `hosts`."""
    hosts: list[str] | None
    has_secret: bool


class CredentialFields(SharingBody):
    """What can be changed of a credential; what is left out stays."""

    kind: CredentialKind = "bearer"
    field: Annotated[str, Field(max_length=120)] = ""
    """The header or query parameter; the user name for basic authentication."""


class NewCredentialBody(CredentialFields):
    """The body of `POST /api/v1/credentials`."""

    name: Name
    hosts: CredentialHosts
    """The only hosts that the secret is sent to: a name alone means HTTPS."""
    secret: CredentialSecret
    """Write-only."""


class CredentialBody(CredentialFields):
    """The body of `PATCH /api/v1/credentials/{id}`."""

    name: Name = ""
    hosts: CredentialHosts = []
    secret: CredentialSecret = ""
    """Write-only."""


def credential_json(credential: Credential, user: User) -> Json:
    shows = can_see_details(credential, user)
    return {
        **definition_json(credential),
        "kind": credential.kind,
        "field": credential.field if shows else None,
        "hosts": list(credential.hosts) if shows else None,
        "has_secret": bool(credential.sealed),
    }


CREDENTIALS = Definition("credential", Credential, definition_json, credential_json)


def list_credentials(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The credentials that you may use in tools; nobody can read their secrets."""
    return list_definitions(
        CREDENTIALS, user, query, lambda row: credential_json(row, user)
    )


def read_credential(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One credential, without its secret."""
    return CREDENTIALS.respond(user, int(pk))


def create_credential(
    request: HttpRequest, user: User, body: NewCredentialBody
) -> HttpResponse:
    """Create a credential; its secret is stored encrypted, and never shown."""
    require_right(user, "add_credential")
    with transaction.atomic():
        made = save_by_form(Credential(owner=user), body, COLUMNS, open_credential_form)
    return CREDENTIALS.respond(user, made.pk, 201)


def change_credential(
    request: HttpRequest, user: User, pk: str, body: CredentialBody
) -> HttpResponse:
    """Change a credential; without `secret`, the stored one stays."""
    require_changeable(CREDENTIALS, user, pk)
    with CREDENTIALS.lock(request, pk) as row:
        save_by_form(row, body, COLUMNS, open_credential_form)
    return CREDENTIALS.respond(user, row.pk)


def open_credential_form(data: QueryDict, row: Any) -> CredentialForm:
    return CredentialForm(data, instance=row)


def delete_credential(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete a credential that no tool or server uses."""
    delete_staff_row(CREDENTIALS, request, user, pk)
    return no_content()


ROUTES = [
    Route(
        "GET",
        "credentials",
        list_credentials,
        "List credentials",
        Page[CredentialShape],
        query=DefinitionQuery,
    ),
    Route(
        "POST",
        "credentials",
        create_credential,
        "Create a credential",
        CredentialShape,
        scope="build",
        body=NewCredentialBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "credentials/{id}",
        read_credential,
        "Read a credential",
        CredentialShape,
        has_etag=True,
    ),
    Route(
        "PATCH",
        "credentials/{id}",
        change_credential,
        "Change a credential",
        CredentialShape,
        scope="build",
        body=CredentialBody,
        has_etag=True,
    ),
    Route(
        "DELETE",
        "credentials/{id}",
        delete_credential,
        "Delete a credential",
        scope="build",
        status=204,
        errors=(409,),
        has_etag=True,
    ),
]
