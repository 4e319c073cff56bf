"""People and service accounts in the API, for users who can change accounts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.etags import build_etag, check_if_match
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.serializers import Json, format_timestamp
from runs.services.errors import FieldError
from tools.accounts.save import change_description, create_service_account
from tools.accounts.service_account import is_service_account
from tools.admin.grantable import list_grantable_groups, may_administer

AccountKind = Literal["person", "service"]
"""`service`: a program that has tokens and cannot sign in."""
GroupName = Annotated[str, Field(max_length=150)]
SAVED_FIELDS = ("first_name", "last_name", "email", "is_active")
PERSONAL_FIELDS = ("first_name", "last_name", "email", "password")


class PersonShape(Shape):
    """A user, or a service account."""

    id: int
    username: str
    kind: AccountKind
    description: str
    """Of a service account: what it does."""
    first_name: str
    last_name: str
    email: str
    is_active: bool
    is_staff: bool
    is_superuser: bool
    groups: list[str]
    joined_at: str
    last_sign_in_at: str | None
    token_used_at: str | None
    """When one of the tokens was last used."""


class PeopleQuery(PageQuery):
    """Which accounts."""

    kind: AccountKind | None = None
    q: Annotated[str, Field(max_length=150)] = ""
    """Part of the user name."""
    active: bool | None = None


class PersonDetails(StrictBody):
    """What can be set and changed of an account."""

    description: Annotated[str, Field(max_length=200)] = ""
    """Of a service account only."""
    first_name: Annotated[str, Field(max_length=150)] = ""
    last_name: Annotated[str, Field(max_length=150)] = ""
    email: Annotated[str, Field(max_length=254)] = ""
    groups: list[GroupName] = []
    """Names of groups, all of them."""


class NewPersonBody(PersonDetails):
    """The body of `POST /api/v1/people`."""

    username: Annotated[str, Field(min_length=1, max_length=150)]
    kind: AccountKind = "person"
    password: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """Write-only; null for people who sign in by link, and for service accounts."""


class PersonBody(PersonDetails):
    """The body of `PATCH /api/v1/people/{id}`."""

    is_active: bool = True
    """False ends sessions, tokens, login links and schedules."""


def require_people_right(user: User, *codenames: str) -> None:
    """Raise a 403 for users who could not open the pages of users."""
    allowed = any(user.has_perm(f"auth.{codename}") for codename in codenames)
    if not (user.is_superuser or (user.is_staff and allowed)):
        message = "Only administrators and staff with the permission may do this."
        raise field_problem("Authorization", message, 403)


def find_person(pk: str) -> User:
    """Return an account; raise a 404."""
    found: User | None = accounts().filter(pk=int(pk)).first()
    if found is None:
        raise not_found("User", pk)
    return found


def find_changeable_person(actor: User, pk: str) -> User:
    """Return an account that `actor` may change; raise a 403 or 404."""
    require_people_right(actor, "change_user")
    target = find_person(pk)
    if not may_administer(actor, target):
        message = "This account has permissions that you do not have."
        raise field_problem("id", message, 403)
    return target


def accounts() -> Any:
    rows = User.objects.select_related("service_account").prefetch_related("groups")
    return rows.annotate(token_used_at=Max("api_tokens__last_used_at"))


def get_account_kind(user: User) -> AccountKind:
    return "service" if is_service_account(user) else "person"


def list_groups_of_user(user: User) -> list[str]:
    return sorted(group.name for group in user.groups.all())


def person_json(user: Any) -> Json:
    """Return an account of `accounts()`."""
    is_service = is_service_account(user)
    return {
        "id": user.pk,
        "username": user.get_username(),
        "kind": get_account_kind(user),
        "description": user.service_account.description if is_service else "",
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "is_active": user.is_active,
        "is_staff": user.is_staff,
        "is_superuser": user.is_superuser,
        "groups": list_groups_of_user(user),
        "joined_at": format_timestamp(user.date_joined),
        "last_sign_in_at": format_timestamp(user.last_login),
        "token_used_at": format_timestamp(user.token_used_at),
    }


def get_person_etag(user: Any) -> str:
    """Return the ETag of an account; signing in does not alter it."""
    shape = person_json(user)
    del shape["last_sign_in_at"], shape["token_used_at"]
    return build_etag(repr(shape))


def respond_with_person(pk: int, status: int = 200) -> HttpResponse:
    user = find_person(str(pk))
    headers = {"ETag": get_person_etag(user)}
    if status == 201:
        headers["Location"] = reverse("api-person", args=[pk])
    return json_response(person_json(user), status, **headers)


def list_people(request: HttpRequest, user: User, query: PeopleQuery) -> HttpResponse:
    """Users and service accounts, the newest first."""
    require_people_right(user, "view_user", "change_user")
    rows = accounts()
    if query.kind is not None:
        rows = rows.filter(service_account__isnull=query.kind == "person")
    if query.active is not None:
        rows = rows.filter(is_active=query.active)
    if query.q:
        rows = rows.filter(username__icontains=query.q)
    return json_response(paginate_by_id(rows, query, person_json))


def read_person(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One user or service account, with an ETag."""
    require_people_right(user, "view_user", "change_user")
    return respond_with_person(int(pk))


def create_person(
    request: HttpRequest, user: User, body: NewPersonBody
) -> HttpResponse:
    """Create a user without permissions of their own, or a service account."""
    require_people_right(user, "add_user")
    made = User(username=body.username)
    is_service = body.kind == "service"
    set_details(made, body, is_service=is_service)
    groups = find_grantable_groups(user, body.groups)
    if groups:
        require_people_right(user, "change_user")
    validate_person(made, password=body.password)
    made.set_password(body.password)  # takes time, so outside of the transaction
    try:
        with transaction.atomic():
            if is_service:
                create_service_account(made, description=body.description)
            else:
                made.save()
            made.groups.set(groups)
    except IntegrityError:  # the name was taken meanwhile
        message = "A user with that username already exists."
        raise field_problem("username", message) from None
    return respond_with_person(made.pk, 201)


def set_details(target: User, body: PersonDetails, *, is_service: bool) -> None:
    """Set the sent fields, unless they belong to the other kind of account."""
    sent = body.model_fields_set
    if not is_service and "description" in sent:
        message = "Only service accounts have a description."
        raise field_problem("description", message)
    for name in PERSONAL_FIELDS:
        if name not in sent:
            continue
        if is_service:
            raise field_problem(name, "A service account does not have this field.")
        if name != "password":
            setattr(target, name, getattr(body, name))


def find_grantable_groups(actor: User, names: list[str]) -> list[Group]:
    """Return groups by name; raise a 422 for those that `actor` may not grant."""
    found = {group.name: group for group in list_grantable_groups(actor)}
    for name in names:
        if name not in found:
            message = (
                f"Group {name!r} not found, or it has permissions that you do not have."
            )
            raise field_problem("groups", message)
    return [found[name] for name in names]


def validate_person(target: User, *, password: str | None) -> None:
    """Raise a 422 with what is wrong with a name, an address or a password."""
    errors: list[FieldError] = []
    try:
        target.full_clean(exclude=["password"])
    except ValidationError as refused:
        for name, messages in refused.message_dict.items():
            errors += [FieldError(name, message) for message in messages]
    if password is not None:
        try:
            validate_password(password, target)
        except ValidationError as refused:
            errors += [FieldError("password", message) for message in refused.messages]
    if errors:
        raise ApiProblem(422, errors)


def change_person(
    request: HttpRequest, user: User, pk: str, body: PersonBody
) -> HttpResponse:
    """Change details and groups, enable or disable the account."""
    with lock_person(request, user, pk) as target:
        is_service = is_service_account(target)
        set_details(target, body, is_service=is_service)
        if "is_active" in body.model_fields_set:
            if not body.is_active and target.pk == user.pk:
                message = "You cannot disable your own account."
                raise field_problem("is_active", message)
            target.is_active = body.is_active
        validate_person(target, password=None)
        target.save(update_fields=SAVED_FIELDS)  # not `last_login`
        if is_service and "description" in body.model_fields_set:
            change_description(target.service_account, body.description)
        if "groups" in body.model_fields_set:
            target.groups.set(find_grantable_groups(user, body.groups))
    return respond_with_person(target.pk)


@contextmanager
def lock_person(request: HttpRequest, actor: User, pk: str) -> Iterator[User]:
    """Lock an account that `actor` may change, in a transaction; check `If-Match`."""
    with transaction.atomic():
        list(User.objects.select_for_update().filter(pk=int(pk)))
        target = find_changeable_person(actor, pk)
        check_if_match(request, get_person_etag(target))
        yield target


ROUTES = [
    Route(
        "GET",
        "people",
        list_people,
        "List people and service accounts",
        Page[PersonShape],
        scope="admin",
        query=PeopleQuery,
    ),
    Route(
        "POST",
        "people",
        create_person,
        "Create a person or service account",
        PersonShape,
        scope="admin",
        body=NewPersonBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "people/{id}",
        read_person,
        "Read a person or service account",
        PersonShape,
        scope="admin",
        has_etag=True,
    ),
    Route(
        "PATCH",
        "people/{id}",
        change_person,
        "Change a person or service account",
        PersonShape,
        scope="admin",
        body=PersonBody,
        has_etag=True,
    ),
]
