"""Signing in and out."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.make import make_agent, make_user

pytestmark = pytest.mark.django_db


def test_shows_the_page_to_a_stranger(client):
    page = client.get("/sign-in/")

    assert page.status_code == 200
    assert "Sign in" in page.content.decode()


def test_lets_in_who_knows_the_password(client):
    make_user("ann", password="right horse")

    answer = client.post("/sign-in/", {"username": "ann", "password": "right horse"})

    assert answer.headers["Location"] == "/"


def test_says_so_where_they_do_not_belong_together_and_keeps_the_name(client):
    make_user("ann")

    answer = client.post("/sign-in/", {"username": "ann", "password": "wrong"})

    assert answer.status_code == 200
    assert "The name or password is wrong" in answer.content.decode()
    assert 'value="ann"' in answer.content.decode()


def test_goes_back_to_the_page_that_was_asked_for(client):
    make_user("ann")

    answer = client.post(
        "/sign-in/", {"username": "ann", "password": "secret", "next": "/runs/"}
    )

    assert answer.headers["Location"] == "/runs/"


@pytest.mark.parametrize(
    ("asked", "opened"),
    [("", "/chat/"), ("/", "/chat/"), ("/runs/", "/runs/"), ("/?mine=1", "/?mine=1")],
)
def test_people_who_only_chat_begin_in_the_chat(client, asked, opened):
    make_agent(make_user("ben"), visibility="everyone")
    make_user("ann")

    answer = client.post(
        "/sign-in/", {"username": "ann", "password": "secret", "next": asked}
    )

    assert answer.headers["Location"] == opened


def test_without_an_agent_to_chat_with_people_begin_on_the_home_page(client):
    make_agent(make_user("ben"))
    make_user("ann")

    answer = client.post("/sign-in/", {"username": "ann", "password": "secret"})

    assert answer.headers["Location"] == "/"


def test_people_with_agents_of_their_own_begin_on_the_home_page(client):
    make_agent(make_user("ann"))

    answer = client.post("/sign-in/", {"username": "ann", "password": "secret"})

    assert answer.headers["Location"] == "/"


def test_signs_out_by_post_only(client):
    client.force_login(make_user())

    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302


def test_keeps_the_theme_and_goes_back(client):
    client.force_login(make_user())

    answer = client.post("/preferences/theme/", {"theme": "dark", "next": "/?q=1"})

    assert answer.headers["Location"] == "/?q=1"
    assert 'data-theme="dark"' in client.get("/").content.decode()


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example"])
def test_never_goes_to_another_site(client, there):
    client.force_login(make_user())

    answer = client.post("/preferences/theme/", {"theme": "dark", "next": there})

    assert answer.headers["Location"] == "/"


def test_the_admin_asks_strangers_on_the_same_page(client):
    make_user("ann", is_superuser=True)
    page = client.get("/admin/runs/run/", follow=True)
    url, _ = page.redirect_chain[-1]

    entered = client.post(
        url, {"username": "ann", "password": "secret"}, follow=True
    ).redirect_chain

    assert url.startswith("/sign-in/")
    assert entered[-1][0] in {"/admin/runs/run/", "/admin/"}


def test_the_admin_is_closed_to_who_is_no_operator(client):
    client.force_login(make_user())

    answer = client.get("/admin/", follow=True)

    assert answer.status_code == 403
    assert "Access denied" in answer.content.decode()


def test_the_admin_sends_nobody_to_another_site(client):
    client.force_login(make_user(is_superuser=True))

    answer = client.get("/admin/login/?next=https://evil.example/")

    assert answer.headers["Location"] == "/admin/"


@pytest.mark.parametrize(
    ("headers", "opened"),
    [
        ({"Referer": "http://testserver/agents/?q=a"}, "/agents/?q=a"),
        ({"HX-Current-URL": "http://testserver/runs/7/"}, "/runs/7/"),
        ({"Referer": "http://testserver"}, "/"),
        ({"Referer": "https://evil.example/runs/"}, "/"),
        ({"Referer": "http://[testserver/"}, "/"),
        ({}, "/"),
    ],
)
def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(
    client, headers, opened
):
    answer = client.post("/agents/1/archive/", headers=headers)

    assert answer.status_code == 302
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)["next"]
    assert asked == [opened]


def test_a_form_sent_after_the_session_ended_says_that_nothing_was_saved(client):
    page = client.post("/agents/1/archive/", follow=True)

    assert "You were signed out, so nothing was saved." in page.text


def test_a_part_sent_after_the_session_ended_leaves_no_message(client):
    client.post("/agents/1/archive/", headers={"HX-Request": "true"})

    assert "You were signed out" not in client.get("/sign-in/").text
