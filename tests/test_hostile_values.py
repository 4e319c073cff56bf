"""No value of a query, a field or a key is answered with a server error."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from tests.every_address import (
    ERROR_PAGES,
    Address,
    ask,
    list_addresses,
    render_nothing,
)
from tests.make import make_user
from tests.makers.world import make_world

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
NO_SUCH_METHOD = 405
"""An answer without a look at the values."""
KEY = re.compile(r"/\d+/")

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def browser(settings, monkeypatch) -> Client:
    """Return that of the owner of one row of everything; the site calls nobody."""
    render_nothing(monkeypatch, *ERROR_PAGES)
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
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


def failed_kinds(
    browser: Client, method: str, path: str, names: Iterable[str]
) -> Iterator[str]:
    """Yield the kinds of values that are an error, unless none is looked at."""
    for kind, value in VALUES.items():
        sent = encode(names, value)
        if method == "GET":
            answer = ask(browser, "GET", f"{path}?{sent}")
        else:
            answer = ask(browser, method, path, sent)
        if answer.status_code >= 500:
            yield kind
        if answer.status_code == NO_SUCH_METHOD:
            return


def test_no_query_is_an_error(browser):
    failed = [
        (one.name, kind)
        for one in pages()
        for kind in failed_kinds(browser, "GET", one.path, COMMON.split())
    ]

    assert failed == []


def test_no_field_is_an_error(browser):
    failed = []
    for one in pages():
        if ask(browser, "POST", one.path).status_code != NO_SUCH_METHOD:
            names = {*COMMON.split(), *fields_of(browser, one.path)}
            kinds = failed_kinds(browser, "POST", one.path, names)
            failed += [(one.name, kind) for kind in kinds]

    assert failed == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_key_is_an_error(browser, method):
    huge = [
        (one.name, KEY.sub(f"/{'9' * 19}/", one.path))
        for one in pages()
        if KEY.search(one.path)
    ]

    failed = [
        name for name, path in huge if ask(browser, method, path).status_code >= 500
    ]

    assert failed == []
