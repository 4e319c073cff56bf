"""Import of agents in the API: agent files, and files of other products."""

from typing import Annotated, NamedTuple

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.services.agentfile.load import ImportResult, import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from runs.services.errors import FieldError
from runs.services.importers.convert import ForeignImport, convert_foreign_file
from runs.services.importers.errors import ForeignFileRefused


class ImportBody(StrictBody):
    """An agent file, or a file of another product, as text."""

    file: Annotated[str, Field(min_length=1, max_length=2_000_000)]
    name: Annotated[str, Field(max_length=200)] = ""
    """Name of the file, for products whose files contain no name."""
    dry_run: bool = False
    """Whether to only return what would be created."""


class NotImportedShape(Shape):
    """A part of a file that has no counterpart here."""

    part: str
    reason: str


class ImportShape(Shape):
    """What an import has created."""

    created: list[str]
    updated: list[str]
    missing: list[str]
    """What the drafts still need."""
    dry_run: bool
    """Whether nothing was stored."""
    product: str | None
    """The product whose file was converted; null for an agent file."""
    agentfile: str | None
    """The converted file as an agent file; null for an agent file."""
    not_imported: list[NotImportedShape]
    """Parts of the converted file that were left out or replaced."""


class FileImport(NamedTuple):
    """What an import has created, and what the file was converted from."""

    done: ImportResult
    foreign: ForeignImport | None


def import_agents(request: HttpRequest, user: User, body: ImportBody) -> HttpResponse:
    """Create private drafts from a file, all of it or nothing.

    Files of other products are converted to an agent file first.
    """
    done, foreign = import_file(body, user)
    skipped = foreign.skipped if foreign else ()
    return json_response(
        {
            "created": done.created,
            "updated": done.updated,
            "missing": list(done.missing),
            "dry_run": body.dry_run,
            "product": foreign.product if foreign else None,
            "agentfile": foreign.text if foreign else None,
            "not_imported": [
                {"part": one.part, "reason": one.reason} for one in skipped
            ],
        }
    )


def import_file(body: ImportBody, user: User) -> FileImport:
    """Import the file of a body; raise a 422 that names the places of its errors."""
    try:
        foreign = convert_foreign_file(body.file, user, name=body.name)
    except ForeignFileRefused as error:
        raise field_problem("file", str(error)) from None
    text = foreign.text if foreign else body.file
    try:
        done = import_agentfile(text, user, inert=True, dry_run=body.dry_run)
    except AgentFileRefused as error:
        found = [
            FieldError(f"file.{one.field}" if one.field else "file", one.message)
            for one in error.errors
        ]
        raise ApiProblem(422, found) from None
    return FileImport(done, foreign)


ROUTES = [
    Route(
        "POST",
        "agents/import",
        import_agents,
        "Import agents",
        ImportShape,
        scope="build",
        body=ImportBody,
    ),
]
