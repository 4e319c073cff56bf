"""Groups in the API: who shares definitions, and who approves."""

from typing import Annotated

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.etags import build_etag, check_if_match
from runs.api.problems import field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.api.site.people import require_people_right
from runs.serializers import Json
from tools.admin.grantable import may_administer
from tools.admin.group_members import (
    list_changeable_members,
    may_change_members,
    save_members,
)

Username = Annotated[str, Field(max_length=150)]


class GroupShape(Shape):
    """A group."""

    id: int
    name: str
    members: list[str]


class GroupMembers(StrictBody):
    """Who is in a group."""

    members: Annotated[list[Username], Field(max_length=1000)] = []
    """User names, all of them; people and service accounts."""


class NewGroupBody(GroupMembers):
    """The body of `POST /api/v1/groups`."""

    name: Annotated[str, Field(min_length=1, max_length=150)]


class GroupBody(GroupMembers):
    """The body of `PATCH /api/v1/groups/{id}`."""

    name: Annotated[str, Field(min_length=1, max_length=150)] = ""


def group_json(group: Group) -> Json:
    members = sorted(one.get_username() for one in group.user_set.all())
    return {"id": group.pk, "name": group.name, "members": members}


def get_group_etag(group: Group) -> str:
    return build_etag(repr(group_json(group)))


def respond_with_group(group: Group, status: int = 200) -> HttpResponse:
    headers = {"ETag": get_group_etag(group)}
    if status == 201:
        headers["Location"] = reverse("api-group", args=[group.pk])
    return json_response(group_json(group), status, **headers)


def list_groups(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """Your groups with their members; administrators see all."""
    rows = Group.objects.prefetch_related("user_set")
    rows = rows if user.is_superuser else rows.filter(user=user)
    return json_response(paginate_by_id(rows, query, group_json))


def read_group(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One group that you are in, or may view in the administration; with an ETag."""
    group = find_group(pk)
    may_view = any(user.has_perm(f"auth.{do}_group") for do in ("view", "change"))
    is_allowed = user.is_superuser or (user.is_staff and may_view)
    if not is_allowed and group not in user.groups.all():
        raise not_found("Group", pk)
    return respond_with_group(group)


def find_group(pk: str) -> Group:
    found = Group.objects.filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Group", pk)
    return found


def create_group(request: HttpRequest, user: User, body: NewGroupBody) -> HttpResponse:
    """Create a group without permissions."""
    require_people_right(user, "add_group")
    with transaction.atomic():
        group = Group(name=body.name)
        save_group_name(group)
        set_members(group, body, user)
    return respond_with_group(group, 201)


def change_group(
    request: HttpRequest, user: User, pk: str, body: GroupBody
) -> HttpResponse:
    """Rename a group, or set its members; members you may not change stay."""
    require_people_right(user, "change_group")
    with transaction.atomic():
        list(Group.objects.select_for_update().filter(pk=int(pk)))
        group = find_group(pk)
        if not may_administer(user, group):
            message = "This group has permissions that you do not have."
            raise field_problem("id", message, 403)
        check_if_match(request, get_group_etag(group))
        if "name" in body.model_fields_set and body.name != group.name:
            group.name = body.name
            save_group_name(group)
        set_members(group, body, user)
    return respond_with_group(find_group(pk))


def save_group_name(group: Group) -> None:
    """Save a group; raise a 422 if there is another one with its name."""
    try:
        with transaction.atomic():
            group.save()
    except IntegrityError:
        message = f"A group {group.name!r} exists already."
        raise field_problem("name", message) from None


def set_members(group: Group, body: GroupMembers, user: User) -> None:
    """Set the members that the body has; raise a 403 or 422."""
    if "members" not in body.model_fields_set:
        return
    if not may_change_members(user, group):
        message = "Members are changed by staff who can change users."
        raise field_problem("members", message, 403)
    known = {one.username: one for one in list_changeable_members(user, group)}
    stay = set(group.user_set.values_list("username", flat=True)) - set(known)
    for name in body.members:
        if name not in known and name not in stay:
            message = f"User {name!r} not found, disabled, or not yours to change."
            raise field_problem("members", message)
    wanted = [known[name] for name in body.members if name in known]
    save_members(group, wanted, by=user)


ROUTES = [
    Route(
        "GET", "groups", list_groups, "List groups", Page[GroupShape], query=PageQuery
    ),
    Route(
        "POST",
        "groups",
        create_group,
        "Create a group",
        GroupShape,
        scope="admin",
        body=NewGroupBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "groups/{id}",
        read_group,
        "Read a group",
        GroupShape,
        has_etag=True,
    ),
    Route(
        "PATCH",
        "groups/{id}",
        change_group,
        "Change a group",
        GroupShape,
        scope="admin",
        body=GroupBody,
        has_etag=True,
    ),
]
