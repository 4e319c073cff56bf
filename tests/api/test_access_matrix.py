"""Who gets what at each route of the API: the table `access.txt`, row by row.

A new route fails here until the table has a line for it. The first group of letters
stands for callers with all scopes: without a token, a member, a viewer, the owner, a
tool manager, an administrator. The second one is the owner with one scope at a time:
read, run, approve, build, admin. Letters:

    o  done             u  401, a token is missing     d  403, may not do this
    -  404, not there   b  the request is refused (400, 409, 412, 422)

Every answer is validated against the OpenAPI document.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver

from runs.api.documentation import get_document
from runs.api.registry import ROUTES
from runs.api.route import Route, get_url_name
from runs.models import ApiToken
from runs.services.accounts.tokens import create_token
from tests.access import doors
from tests.api.bodies import BODIES
from tests.every_address import build_path
from tests.make import make_user
from tests.makers.world import make_world

TABLE = Path(__file__).with_name("access.txt")
SCOPES = tuple(ApiToken.Scope.values)
LETTERS = {401: "u", 403: "d", 404: "-"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def headers(settings) -> dict[str, dict[str, str]]:
    """Return the headers of each caller, on a site with one row of everything."""
    settings.PRIVATE_HOSTS = "provider=127.0.0.1;mcp=127.0.0.1"
    owner, group = make_user("ann"), Group.objects.create(name="crew")
    make_world(owner, group)
    viewer = make_user("viewer")
    viewer.groups.add(group)
    manager = make_user("manager", is_staff=True)
    manager.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools")
    )
    people = {
        "member": make_user("member"),
        "viewer": viewer,
        "owner": owner,
        "manager": manager,
        "admin": make_user("root", is_superuser=True),
    }
    found = {name: bearer(user, SCOPES) for name, user in people.items()}
    by_scope = {f"only {scope}": bearer(owner, [scope]) for scope in SCOPES}
    return {"nobody": {}, **found, **by_scope}


def bearer(user: User, scopes: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_token(user, scopes=scopes)}"}


class Validators:
    """The schemas of the document, compiled once each."""

    def __init__(self) -> None:
        self.document = get_document()
        self.known: dict[str, Any] = {}

    def check(self, route: Route, answer: HttpResponse) -> None:
        """Fail if the answer is not one of those in the document."""
        path = self.document["paths"][f"/api/v1/{route.path}"]
        responses = path[route.method.lower()]["responses"]
        said = responses.get(str(answer.status_code))
        assert said is not None, f"{route.operation_id}: {answer.status_code}"
        if "content" not in said:
            assert answer.content == b"", route.operation_id
            return
        media = answer.headers["Content-Type"].split(";")[0]
        assert media in said["content"], f"{route.operation_id}: {media}"
        if not media.endswith("json"):
            return
        schema = said["content"][media]["schema"]
        errors = [*self.compiled(schema).iter_errors(answer.json())]
        assert not errors, f"{route.operation_id}: {errors[0]}"

    def compiled(self, schema: dict[str, Any]) -> Any:
        key = json.dumps(schema)
        if key not in self.known:
            whole = {**schema, "components": self.document["components"]}
            self.known[key] = jsonschema_rs.validator_for(whole)
        return self.known[key]


def ask_route(route: Route, path: str, headers: dict[str, str]) -> HttpResponse:
    """Send a request and take back what it changed."""
    body = BODIES.get(route.operation_id)
    with transaction.atomic():
        answer = Client(raise_request_exception=False).generic(
            route.method,
            path,
            json.dumps(body).encode() if route.body else b"",
            content_type="application/json",
            headers=headers,
        )
        transaction.set_rollback(True)
    return answer


def letter(answer: HttpResponse) -> str:
    code = answer.status_code
    if code < 300:
        return "o"
    return LETTERS.get(code) or ("b" if code < 500 else str(code))


def seen_lines(headers: dict[str, dict[str, str]]) -> Iterator[str]:
    named = {door.name: door for door in doors_of_api()}
    validators = Validators()
    for route in ROUTES:
        path = build_path(named[get_url_name(route.path)])
        letters = {}
        for who, sent in headers.items():
            answer = ask_route(route, path, sent)
            validators.check(route, answer)
            letters[who] = letter(answer)
        scopes = "".join(letters.pop(f"only {scope}") for scope in SCOPES)
        callers = "".join(letters.values())
        yield f"{route.method:<6} {route.path:<40} {callers:<8} {scopes}"


def doors_of_api() -> Iterator[Any]:
    for door in doors(get_resolver().url_patterns):
        if door.name.startswith("api-"):
            yield door


def test_every_caller_gets_what_the_table_says(headers):
    seen = [line.rstrip() for line in seen_lines(headers)]
    expected = [
        line.rstrip()
        for line in TABLE.read_text().splitlines()
        if line and not line.startswith("#")
    ]

    assert seen == expected
