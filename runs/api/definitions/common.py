"""What definitions have in common: sharing, ETags, archive and copies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.text import capfirst
from pydantic import BaseModel, Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.etags import build_etag, check_if_match
from runs.api.problems import field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Endpoint, Route
from runs.api.shapes import Shape
from runs.forms.group_sharing import shareable_groups
from runs.models import AgentVersion
from runs.serializers import Json, format_timestamp
from runs.services.agents.manage import (
    archive_definition,
    duplicate_definition,
    unarchive_definition,
)
from tools.models import ToolRevision
from tools.ownership import Owned, Visibility

Name = Annotated[str, Field(min_length=1, max_length=120)]
VisibilityName = Literal["private", "groups", "everyone"]


class SharingBody(StrictBody):
    """Who else may see and use a definition."""

    visibility: VisibilityName = "private"
    groups: list[Annotated[str, Field(max_length=150)]] = []
    """Names of groups, if the visibility is `groups`."""


class DefinitionShape(Shape):
    """What every definition has."""

    id: int
    slug: str
    name: str
    owner: str
    visibility: VisibilityName
    groups: list[str]
    created_at: str
    updated_at: str
    archived_at: str | None


class DefinitionQuery(PageQuery):
    """Which definitions."""

    q: Annotated[str, Field(max_length=200)] = ""
    """Words in the name or slug."""
    slug: Annotated[str, Field(max_length=80)] = ""
    archived: bool = False


def definition_json(row: Any) -> Json:
    """Return what every definition has."""
    is_shared = row.visibility == Visibility.GROUPS
    return {
        "id": row.pk,
        "slug": row.slug,
        "name": row.name,
        "owner": row.owner.get_username(),
        "visibility": row.visibility,
        "groups": [group.name for group in row.groups.all()] if is_shared else [],
        "created_at": format_timestamp(row.created_at),
        "updated_at": format_timestamp(row.updated_at),
        "archived_at": format_timestamp(row.archived_at),
    }


def get_etag(row: Owned) -> str:
    """Return the ETag of a definition; every change alters it."""
    return build_etag(f"{type(row).__name__} {row.pk} {row.updated_at.isoformat()}")


def share_definition(row: Owned, body: SharingBody) -> None:
    """Set visibility and groups, if the body has them; raise a 422.

    The row is not saved.
    """
    sent = body.model_fields_set
    if "visibility" in sent:
        row.visibility = body.visibility
    if not sent & {"visibility", "groups"}:
        return
    if row.visibility != Visibility.GROUPS:
        if body.groups:
            message = "Groups are used only if the visibility is `groups`."
            raise field_problem("groups", message)
        return
    keeps_groups = "groups" not in sent and row.pk and row.groups.exists()
    if not (body.groups or keeps_groups):
        raise field_problem("groups", "Name at least one group.")
    find_groups(row, body)


def find_groups(row: Owned, body: SharingBody) -> list[Group]:
    """Return the groups of the body; raise a 422 for those not to be shared with."""
    found = {group.name: group for group in shareable_groups(row)}
    for name in body.groups:
        if name not in found:
            message = f"Group {name!r} not found, or you are not a member."
            raise field_problem("groups", message)
    return [found[name] for name in body.groups]


def shared_group_ids(row: Owned, body: SharingBody) -> list[int]:
    """Return the groups to share with, which `share_definition` has checked."""
    if row.visibility != Visibility.GROUPS:
        return []
    if "groups" in body.model_fields_set:
        return [group.pk for group in find_groups(row, body)]
    return list(row.groups.values_list("pk", flat=True)) if row.pk else []


def save_groups(row: Owned, body: SharingBody) -> None:
    """Store the groups of a saved row, as `share_definition` has checked them."""
    if row.visibility != Visibility.GROUPS:
        row.groups.clear()
    elif "groups" in body.model_fields_set:
        row.groups.set(find_groups(row, body))


@dataclass(frozen=True)
class Definition:
    """A kind of definition, and how the API shows it."""

    noun: str
    """`agent`; its paths begin with `agents`."""
    model: type[Any]
    summarize: Callable[[Any], Json]
    describe: Callable[[Any, User], Json]
    """Of one row, for this user."""
    extra: Q = Q()
    """Rows that the API has, besides what the user may see."""
    url_name: str = ""
    """Of one row, if it does not follow from the noun."""
    duplicate: Callable[..., Any] = duplicate_definition
    """Takes a row and `by`; returns a private copy."""

    @property
    def path(self) -> str:
        return f"{self.noun}s"

    def visible(self, user: User) -> Any:
        rows = self.model._default_manager.visible_to(user).filter(self.extra)
        return rows.select_related("owner").prefetch_related("groups")

    def find(self, user: User, pk: str) -> Any:
        """Return a row that the user may see; raise a 404."""
        row = self.visible(user).filter(pk=int(pk)).first()
        if row is None:
            raise not_found(capfirst(self.noun), pk)
        return row

    def require_editable(self, user: User, pk: str) -> Any:
        """Return a row that the user may change; raise a 403 or 404."""
        row = self.find(user, pk)
        if not user.is_superuser and row.owner_id != user.pk:
            message = f"Only the owner can change this {self.noun}."
            raise field_problem("id", message, 403)
        return row

    @contextmanager
    def edit(
        self,
        request: HttpRequest,
        user: User,
        pk: str,
        *,
        etag_of: Callable[[Any], str] = get_etag,
    ) -> Iterator[Any]:
        """Lock a row that the user may change, in a transaction; check `If-Match`.

        `etag_of` says of the row what the client has read: all of it, or a part.
        """
        self.require_editable(user, pk)
        with self.lock(request, pk, etag_of=etag_of) as row:
            yield row

    @contextmanager
    def lock(
        self,
        request: HttpRequest,
        pk: str,
        *,
        etag_of: Callable[[Any], str] = get_etag,
    ) -> Iterator[Any]:
        """Lock a row in a transaction, for callers who check access first.

        The row is as stored when the lock is held, and so `If-Match` is checked.
        """
        with transaction.atomic():
            rows = self.model._default_manager.select_for_update()
            row = rows.filter(pk=int(pk)).first()
            if row is None:
                raise not_found(capfirst(self.noun), pk)
            check_if_match(request, etag_of(row))
            yield row

    def respond(self, user: User, pk: int, status: int = 200) -> HttpResponse:
        """Return the row as it is now, with its ETag."""
        row = self.find(user, str(pk))
        headers = {"ETag": get_etag(row)}
        if status == 201:
            name = self.url_name or f"api-{self.noun}"
            headers["Location"] = reverse(name, args=[pk])
        return json_response(self.describe(row, user), status, **headers)


def noted_change_json(row: AgentVersion | ToolRevision) -> Json:
    return {
        "number": row.number,
        "note": row.note,
        "by": row.by.get_username() if row.by else None,
        "at": format_timestamp(row.at),
    }


def list_definitions(
    kind: Definition,
    user: User,
    query: DefinitionQuery,
    show: Callable[[Any], Json],
) -> HttpResponse:
    rows = kind.visible(user).filter(archived_at__isnull=not query.archived)
    if query.slug:
        rows = rows.filter(slug=query.slug)
    for word in query.q.split():
        rows = rows.filter(Q(name__icontains=word) | Q(slug__icontains=word))
    return json_response(paginate_by_id(rows, query, show))


def build_common_routes(
    kind: Definition, shape: type[BaseModel], summary_shape: type[BaseModel]
) -> list[Route]:
    """Return the routes to list, read, archive, unarchive and duplicate."""
    noun, path = kind.noun, kind.path
    article = "an" if noun[0] in "aeiou" else "a"

    def list_rows(
        request: HttpRequest, user: User, query: DefinitionQuery
    ) -> HttpResponse:
        return list_definitions(kind, user, query, kind.summarize)

    def read_row(request: HttpRequest, user: User, pk: str) -> HttpResponse:
        return kind.respond(user, int(pk))

    def archive_row(request: HttpRequest, user: User, pk: str) -> HttpResponse:
        with kind.edit(request, user, pk) as row:
            archive_definition(row)
        return kind.respond(user, row.pk)

    def unarchive_row(request: HttpRequest, user: User, pk: str) -> HttpResponse:
        with kind.edit(request, user, pk) as row:
            unarchive_definition(row)
        return kind.respond(user, row.pk)

    def duplicate_row(request: HttpRequest, user: User, pk: str) -> HttpResponse:
        copy = kind.duplicate(kind.find(user, pk), by=user)
        return kind.respond(user, copy.pk, 201)

    def named(do: Endpoint, name: str, doc: str) -> Endpoint:
        do.__name__, do.__doc__ = name, doc
        return do

    one = f"{path}/{{id}}"
    return [
        Route(
            "GET",
            path,
            named(list_rows, f"list_{noun}s", f"The {noun}s that you may see."),
            f"List {noun}s",
            Page[summary_shape],  # type: ignore[valid-type]  # a shape by noun
            query=DefinitionQuery,
        ),
        Route(
            "GET",
            one,
            named(read_row, f"read_{noun}", f"One {noun}, with an ETag."),
            f"Read {article} {noun}",
            shape,
            has_etag=True,
        ),
        Route(
            "POST",
            f"{one}/archive",
            named(archive_row, f"archive_{noun}", "Hide it; its runs stay."),
            f"Archive {article} {noun}",
            shape,
            scope="build",
            has_etag=True,
        ),
        Route(
            "POST",
            f"{one}/unarchive",
            named(unarchive_row, f"unarchive_{noun}", "Bring it back."),
            f"Unarchive {article} {noun}",
            shape,
            scope="build",
            has_etag=True,
        ),
        Route(
            "POST",
            f"{one}/duplicate",
            named(duplicate_row, f"duplicate_{noun}", "Create a private copy."),
            f"Duplicate {article} {noun}",
            shape,
            scope="build",
            status=201,
            is_idempotent=True,
        ),
    ]
