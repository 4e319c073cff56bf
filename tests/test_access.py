"""Who gets what at each URL: the table `access.txt`, row by row.

A new URL fails here until the table has a line for it. Letters, one for each of `WHO`:

    o  a page, a part, a file, or done        r  sent to another page
    s  sent to sign in                        u  401, a token is missing
    -  404, as if there were nothing          d  403, may not do this
    m  405, no such method                    b  the request itself is refused
"""

from pathlib import Path
from typing import NamedTuple

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.http import HttpResponse
from django.test import Client

from runs.views.error_pages import find_address_above
from tests.every_address import Address, ask, list_addresses, render_nothing
from tests.make import make_user
from tests.makers.world import make_world

TABLE = Path(__file__).with_name("access.txt")
WHO = ("stranger", "member", "viewer", "owner", "manager", "admin")
"""A member of nothing; of the group that rows are shared with and that approves; who
owns the rows; staff with all permissions on tools; a superuser."""
SIGN_IN = ("/sign-in/", "/admin/login/")
WITHOUT_COOKIES = {"oauth-register", "oauth-token"}
"""URLs for programs, which do not know who is signed in to the browser."""
CODES = {401: "u", 403: "d", 404: "-", 405: "m"}

pytestmark = pytest.mark.django_db


class Line(NamedTuple):
    """One URL: a letter for each of `WHO`, by method."""

    name: str
    get: str
    post: str


@pytest.fixture
def clients(settings) -> dict[str, Client]:
    """Return a browser for each of `WHO`, of a site with one row of everything."""
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    settings.PRIVATE_HOSTS = "provider=127.0.0.1;mcp=127.0.0.1"
    settings.METRICS_TOKEN = "secret"
    owner, group = make_user("ann"), Group.objects.create(name="crew")
    make_world(owner, group)
    viewer = make_user("viewer")
    viewer.groups.add(group)
    manager = make_user("manager", is_staff=True)
    manager.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools")
    )
    admin = make_user("root", is_superuser=True)
    people = (None, make_user("member"), viewer, owner, manager, admin)
    return {name: client_of(user) for name, user in zip(WHO, people, strict=True)}


def client_of(user: User | None) -> Client:
    client = Client(raise_request_exception=False)
    if user is not None:
        client.force_login(user)
    return client


def letter(answer: HttpResponse) -> str:
    code = answer.status_code
    if code in (301, 302):
        return "s" if answer.headers["Location"].startswith(SIGN_IN) else "r"
    if code < 300:
        return "o"
    return CODES.get(code) or ("b" if code < 500 else str(code))


def letters(clients: dict[str, Client], one: Address, method: str) -> str:
    return "".join(letter(ask(clients[who], method, one.path)) for who in WHO)


def expected_lines() -> list[Line]:
    rows = [line.split() for line in TABLE.read_text().splitlines()]
    return [Line(*row) for row in rows if row and not row[0].startswith("#")]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everyone_gets_what_the_table_says(clients, monkeypatch, method):
    render_nothing(monkeypatch)
    column = Line._fields.index(method.lower())

    seen = {(one.name, letters(clients, one, method)) for one in list_addresses()}

    assert seen ^ {(line.name, line[column]) for line in expected_lines()} == set()


def test_pages_that_others_share_are_shown(clients):
    """Other sweeps render all pages as an administrator, who has every button."""
    place = WHO.index("viewer")
    names = {line.name for line in expected_lines() if line.get[place] == "o"}

    seen = {
        one.name: letter(ask(clients["viewer"], "GET", one.path))
        for one in list_addresses()
        if one.name in names
    }

    assert seen == dict.fromkeys(names, "o")


def test_the_address_of_a_button_leads_to_no_other_button(clients, monkeypatch):
    render_nothing(monkeypatch)
    buttons = {
        line.name
        for line in expected_lines()
        if line.get.endswith("m") and not line.name.startswith("api-")
    }

    seen = {
        one.name: letter(ask(clients["admin"], "GET", find_address_above(one.path)))
        for one in list_addresses()
        if one.name in buttons
    }

    assert seen.keys() == buttons
    assert [name for name, one in seen.items() if one == "m"] == []


def test_no_form_is_accepted_from_another_site(clients, monkeypatch):
    """Every URL that takes a POST wants the CSRF token, except those for programs."""
    render_nothing(monkeypatch)
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = clients["admin"].cookies
    posts = {line.name: line.post[-1] for line in expected_lines()}

    taken = [
        one.name
        for one in list_addresses()
        if posts[one.name] in "orb"
        and letter(ask(browser, "POST", one.path)) not in ("d", "s")
    ]

    assert set(taken) == WITHOUT_COOKIES
