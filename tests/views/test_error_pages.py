"""Pages for what went wrong."""

import re

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import path

from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db


def raises(request):
    raise RuntimeError("secret detail")


def loses_the_database(request):
    raise OperationalError("connection refused by db.internal")


urlpatterns = [path("boom/", raises), path("away/", loses_the_database)]
handler500 = "runs.views.error_pages.server_error"


def test_a_missing_page_answers_404(client):
    client.force_login(make_user())

    answer = client.get("/no/such/page/")

    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


def test_an_anonymous_visitor_gets_the_same_404(client):
    answer = client.get("/no/such/page/")

    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


def test_a_server_error_hides_the_exception(settings):
    settings.ROOT_URLCONF = "tests.views.test_error_pages"
    settings.LOGIN_URL = "/sign-in/"
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    answer = client.get("/boom/")

    assert answer.status_code == 500
    assert "Server error" in answer.content.decode()
    assert "secret detail" not in answer.content.decode()
    assert 'id="i-home"' in answer.content.decode()  # what its button draws


def test_an_unavailable_database_answers_503_and_refreshes(settings):
    settings.ROOT_URLCONF = "tests.views.test_error_pages"
    settings.LOGIN_URL = "/sign-in/"
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    answer = client.get("/away/")

    assert answer.status_code == 503
    assert "Database unavailable" in answer.content.decode()
    assert "db.internal" not in answer.content.decode()
    assert answer.headers["Refresh"] == "3"


def test_a_database_lost_in_the_session_middleware_answers_503(monkeypatch):
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    def lost(self, *args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", lost)

    assert client.get("/").status_code == 503


def test_a_missing_csrf_token_shows_the_expired_form_page():
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user())

    answer = client.post("/sign-out/")

    assert answer.status_code == 403
    assert "The form has expired" in answer.content.decode()


def test_opening_the_url_of_a_button_answers_405_with_a_page(client):
    run = make_run()
    client.force_login(run.owner)

    answer = client.get(f"/runs/{run.pk}/stop/")

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert "Nothing was changed" in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "above"),
    [
        ("/runs/7/stop/", "/runs/7/"),
        ("/approvals/allowances/3/revoke/", "/approvals/"),
        ("/sign-out/", None),
    ],
)
def test_the_page_for_the_url_of_a_button_links_to_the_page_above(
    client, ann, address, above
):
    html = client.get(address).content.decode()

    link = re.search(r'<a class="btn primary" href="([^"]+)">.*?</svg>([^<]+)', html)
    assert link.groups() == ((above, "Open the page") if above else ("/", "Home"))
