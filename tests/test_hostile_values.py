"""No value of a query, a field or a key is answered with a server error."""

import re
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from tests.every_address import Address, ask, list_addresses
from tests.make import make_user
from tests.world import make_world

VALUES = {
    "unstorable": "a\0\ud800",
    "huge": "9" * 40,
    "marks": "\"'%[1{",
}
COMMON = """
    q tag status agent model tool next step page version kind tab a b period sort order
    prompt o provider source run since until after slug code state noun thing_number
    e all p cursor name title input answer edited reason decision pick do here text
    url config tags events hosts scopes theme language message groups permissions
    user_permissions to number _selected_action action
"""
"""Names of queries and fields, besides those on the page."""
KEY = re.compile(r"/\d+/")

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(settings) -> Client:
    """Return that of the owner of one row of everything; the site calls nobody."""
    settings.PRIVATE_HOSTS = ""
    owner = make_user("root", is_superuser=True)
    make_world(owner, Group.objects.create(name="crew"))
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    return client


def fields_of(browser: Client, path: str) -> set[str]:
    """Return the names of the fields that a page shows."""
    html = ask(browser, "GET", path).content.decode(errors="replace")
    return set(re.findall(r'name="([^"]+)"', html))


def encode(names: Iterable[str], value: str) -> str:
    sent = quote(value, errors="surrogatepass")
    return "&".join(f"{quote(name)}={sent}" for name in names)


def pages() -> list[Address]:
    """Return each address without its query."""
    return [one._replace(path=one.path.partition("?")[0]) for one in list_addresses()]


@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
def test_no_query_is_an_error(browser, value):
    query = encode(COMMON.split(), value)

    failed = [
        one.name
        for one in pages()
        if ask(browser, "GET", f"{one.path}?{query}").status_code >= 500
    ]

    assert failed == []


def test_no_field_is_an_error(browser):
    failed = []
    for one in pages():
        names = {*COMMON.split(), *fields_of(browser, one.path)}
        for kind, value in VALUES.items():
            answer = ask(browser, "POST", one.path, encode(names, value))
            if answer.status_code >= 500:
                failed.append((one.name, kind))

    assert failed == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_key_is_an_error(browser, method):
    huge = [(one.name, KEY.sub(f"/{'9' * 19}/", one.path)) for one in pages()]

    failed = [
        name for name, path in huge if ask(browser, method, path).status_code >= 500
    ]

    assert failed == []
