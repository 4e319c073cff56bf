"""Pages for what went wrong."""

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
handler500 = "runs.views.errors.server_error"


def test_a_missing_page_says_so_and_leads_home(client):
    client.force_login(make_user())

    answer = client.get("/no/such/page/")

    assert answer.status_code == 404
    assert "Nothing is here" in answer.content.decode()


def test_a_stranger_gets_the_same_words(client):
    answer = client.get("/no/such/page/")

    assert answer.status_code == 404
    assert "Nothing is here" in answer.content.decode()


def test_a_mistake_of_ours_tells_no_details(settings):
    settings.ROOT_URLCONF = "tests.views.test_errors"
    settings.LOGIN_URL = "/sign-in/"
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    answer = client.get("/boom/")

    assert answer.status_code == 500
    assert "A mistake of ours" in answer.content.decode()
    assert "secret detail" not in answer.content.decode()
    assert 'id="i-home"' in answer.content.decode()  # what its button draws


def test_a_database_that_is_away_is_503_and_the_page_tries_again(settings):
    settings.ROOT_URLCONF = "tests.views.test_errors"
    settings.LOGIN_URL = "/sign-in/"
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    answer = client.get("/away/")

    assert answer.status_code == 503
    assert "The database is away" in answer.content.decode()
    assert "db.internal" not in answer.content.decode()
    assert answer.headers["Refresh"] == "3"


def test_a_database_that_is_lost_before_the_view_is_503_too(monkeypatch):
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    def lost(self, *args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", lost)

    assert client.get("/").status_code == 503


def test_a_form_without_its_token_says_what_to_do():
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user())

    answer = client.post("/sign-out/")

    assert answer.status_code == 403
    assert "The form was too old" in answer.content.decode()


def test_a_buttons_address_opened_as_a_page_says_that_nothing_was_done(client):
    run = make_run()
    client.force_login(run.owner)

    answer = client.get(f"/runs/{run.pk}/stop/")

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert "Nothing was done" in answer.content.decode()
