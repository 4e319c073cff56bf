"""Every URL asks for a login, except those listed here; and each verb is meant."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import get_resolver, path

from tests.access import Door, doors, is_open

PUBLIC: set[str] = {
    "sign-in",
    "login-link",
    "health",
    "readiness",
    "metrics",
    "run-shared",
    "hook-receive",
    "approve-by-link",
    "script-translations",
    "oauth-register",
    "oauth-resource-mcp",
    "oauth-resource-mcp-build",
    "oauth-resource-mcp-inspect",
    "oauth-server",
    "oauth-token",
}
"""Names of the URLs that strangers may open."""

OWN_GUARD = ("admin:", "api", "api-", "mcp", "openai", "telemetry-traces")
"""Beginnings of names whose views ask by themselves: the admin, and the token API."""

pytestmark = pytest.mark.django_db


def all_doors() -> list[Door]:
    return list(doors(get_resolver().url_patterns))


def address(door: Door) -> str:
    """Return a URL that matches, with 1 for every argument."""
    return door.fill(dict.fromkeys(door.arguments, 1))


def guarded(door: Door) -> bool:
    return door.name not in PUBLIC and not door.name.startswith(OWN_GUARD)


def open_to_strangers() -> list[str]:
    """Return the routes outside the list that do not send a stranger to sign in."""
    found = []
    stranger = Client()
    for door in filter(guarded, all_doors()):
        for verb in ("GET", "POST", "PUT", "DELETE"):
            answer = stranger.generic(verb, address(door))
            if answer.status_code != 302 or "sign-in" not in answer.headers["Location"]:
                found.append(f"{verb} {door.route}")
    return found


def test_a_stranger_is_sent_to_sign_in_everywhere_else():
    assert open_to_strangers() == []


def test_only_listed_views_are_open():
    assert {d.name for d in all_doors() if is_open(d.view) and guarded(d)} == set()


@pytest.mark.slow
def test_no_url_answers_a_verb_it_does_not_know_with_an_error():
    client = Client(raise_request_exception=True)
    client.force_login(User.objects.create_user("ann"))

    codes = {
        f"{verb} {door.route}": client.generic(verb, address(door)).status_code
        for door in filter(guarded, all_doors())
        for verb in ("PUT", "DELETE")
    }

    assert {key: code for key, code in codes.items() if code not in {404, 405}} == {}


def leak(request: HttpRequest, pk: int = 0) -> HttpResponse:
    return HttpResponse("open")


leak.login_required = False
urlpatterns = [
    path("leak/<int:pk>/", leak, name="leak"),
    path("sign-in/", leak, name="sign-in"),
]


@override_settings(ROOT_URLCONF="tests.test_urls")
def test_a_planted_open_view_is_found():
    assert "GET leak/<int:pk>/" in open_to_strangers()
    assert [d.name for d in all_doors() if is_open(d.view) and guarded(d)] == ["leak"]
