"""Passwords, login links and API tokens."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import ApiToken
from runs.services.accounts.login_link import create_login_link, is_valid_login_link
from runs.services.accounts.tokens import create_token, find_valid_token
from tests.make import make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_a_login_link_shows_a_button_and_is_not_used_up_by_looking(client):
    token = create_login_link(make_user("ann"))

    pages = [client.get(f"/login/{token}/").content.decode() for _ in range(2)]

    assert all("signs you in once" in page for page in pages)


def test_pressing_the_button_signs_in_once(client):
    ann = make_user("ann")
    token = create_login_link(ann)

    first = client.post(f"/login/{token}/")
    client.logout()
    second = client.post(f"/login/{token}/")

    assert first.headers["Location"] == "/"
    assert second.status_code == 200
    assert "not valid" in second.content.decode()


def test_an_unknown_link_says_so(client):
    assert "not valid" in client.get("/login/nonsense/").content.decode()


def test_sets_a_password_and_stays_signed_in(client):
    ann = make_user("ann")
    client.force_login(ann)
    new = "a right long password"

    client.post(
        "/account/password/",
        {"old_password": "secret", "new_password1": new, "new_password2": new},
    )

    ann.refresh_from_db()
    assert ann.check_password(new)
    assert client.get("/account/password/").status_code == 200


def test_who_came_by_a_link_needs_no_old_password(client):
    ann = make_user("ann")
    ann.set_unusable_password()
    ann.save()
    client.force_login(ann)
    new = "a right long password"

    client.post("/account/password/", {"new_password1": new, "new_password2": new})

    ann.refresh_from_db()
    assert ann.check_password(new)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"old_password": "x"}, "The current password is wrong", id="old"),
        pytest.param(
            {"new_password2": "y"}, "The two passwords do not match", id="two"
        ),
        pytest.param(
            {"new_password1": "123", "new_password2": "123"}, "too short", id="short"
        ),
    ],
)
def test_refuses_a_bad_password_in_words(client, given, says):
    ann = make_user("ann")
    client.force_login(ann)
    new = "a right long password"
    good = {"old_password": "secret", "new_password1": new, "new_password2": new}

    page = client.post("/account/password/", good | given).content.decode()

    ann.refresh_from_db()
    assert says in page
    assert ann.check_password("secret")


def test_a_new_token_is_shown_once_and_works(client):
    ann = make_user("ann")
    client.force_login(ann)

    made = client.post(
        "/account/tokens/", {"name": "nightly", "scopes": ["read"], "days": "30"}
    )
    page = client.get(made.headers["Location"]).content.decode()
    again = client.get("/account/tokens/").content.decode()

    token = re.search(r">as_([^<]+)</textarea>", page)[1]
    assert find_valid_token(f"as_{token}").user == ann
    assert token not in again
    assert "nightly" in again
    assert "Read what you can see" in again
    made = ApiToken.objects.get()
    assert made.scopes == "read"
    assert timedelta(days=29) < made.expires_at - timezone.now() <= timedelta(days=30)


@pytest.mark.parametrize(
    "wrong", [{"scopes": []}, {"scopes": ["root"]}, {"days": "9999"}]
)
def test_a_token_needs_known_scopes_and_a_known_lifetime(client, wrong):
    client.force_login(make_user())
    good = {"name": "x", "scopes": ["read"], "days": "0"}

    client.post("/account/tokens/", good | wrong)

    assert not ApiToken.objects.exists()


def test_a_token_may_never_expire(client):
    client.force_login(make_user())

    client.post("/account/tokens/", {"name": "x", "scopes": ["run"], "days": "0"})

    assert ApiToken.objects.get().expires_at is None


def test_an_expired_token_is_shown_as_such(client):
    ann = make_user("ann")
    client.force_login(ann)
    create_token(ann, "old", lifetime=timedelta(days=-1))

    assert "expired" in client.get("/account/tokens/").content.decode()


@pytest.mark.parametrize("revoke", [True, False])
def test_a_new_password_revokes_tokens_if_the_user_wants_it(client, revoke):
    ann = make_user("ann")
    client.force_login(ann)
    token, new = create_token(ann), "a right long password"
    create_token(ann, "expired", lifetime=timedelta(0))
    body = {"old_password": "secret", "new_password1": new, "new_password2": new}

    page = client.get("/account/password/").content.decode()
    client.post(
        "/account/password/", body | ({"revoke_tokens": "on"} if revoke else {})
    )

    assert "Also revoke my 1 API token" in page
    assert (find_valid_token(token) is None) is revoke


def test_an_administrators_new_password_revokes_tokens_and_links(client):
    client.force_login(make_user("root", is_superuser=True))
    ann = make_user("ann")
    token, link, new = create_token(ann), create_login_link(ann), "a right long one"

    client.post(
        f"/admin/auth/user/{ann.pk}/password/", {"password1": new, "password2": new}
    )

    assert find_valid_token(token) is None
    assert client.get(f"/login/{link}/").context["is_usable"] is False


def test_no_request_removes_a_password_and_leaves_tokens(client):
    client.force_login(make_user("root", is_superuser=True))
    ann = make_user("ann")
    token = create_token(ann)

    client.post(
        f"/admin/auth/user/{ann.pk}/password/",
        {"usable_password": "false", "unset-password": "1"},
    )

    ann.refresh_from_db()
    assert (ann.has_usable_password(), find_valid_token(token) is None) == (True, False)


def test_a_new_password_ends_login_links(client):
    ann = make_user("ann")
    client.force_login(ann)
    link, new = create_login_link(ann), "a right long password"

    client.post(
        "/account/password/",
        {"old_password": "secret", "new_password1": new, "new_password2": new},
    )

    assert not is_valid_login_link(link)


def test_a_token_needs_a_name(client):
    client.force_login(make_user())

    page = client.post("/account/tokens/", {"name": ""}).content.decode()

    assert "Enter a name." in page
    assert not ApiToken.objects.exists()


def test_a_revoked_token_opens_nothing(client):
    ann = make_user("ann")
    client.force_login(ann)
    token = create_token(ann, "zebra")

    url = f"/account/tokens/{ApiToken.objects.get().pk}/revoke/"
    page = client.post(url).content.decode()
    assert "Revoke zebra?" in page
    assert find_valid_token(token) is not None
    client.post(url, {"sure": "1"})
    client.get("/account/tokens/")  # the message with its name is shown once

    assert find_valid_token(token) is None
    assert "zebra" not in client.get("/account/tokens/").content.decode()


def test_a_token_that_expires_soon_is_renewed(client):
    ann = make_user("ann")
    client.force_login(ann)
    soon = create_token(ann, "helpdesk", lifetime=timedelta(days=6))
    create_token(ann, "later", lifetime=timedelta(days=80))
    create_token(ann, "never")
    page = client.get("/account/tokens/").text
    assert page.count("Renew for 90 days") == 1

    token = ApiToken.objects.get(name="helpdesk")
    page = client.post(f"/account/tokens/{token.pk}/renew/", follow=True).text

    assert "Token helpdesk is valid for 90 days." in page
    assert "Renew for 90 days" not in page
    token.refresh_from_db()
    left = token.expires_at - timezone.now()
    assert timedelta(days=89) < left <= timedelta(days=90)
    assert find_valid_token(soon) is not None
    assert AuditEntry.objects.get(action="renewed").thing == "helpdesk"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"lifetime": timedelta(seconds=-1)}, id="expired"),
        pytest.param({"lifetime": None}, id="does not expire"),
        pytest.param(
            {"lifetime": timedelta(days=1), "oauth_code": "code"}, id="of a program"
        ),
    ],
)
def test_other_tokens_are_not_renewed(client, fields):
    ann = make_user("ann")
    client.force_login(ann)
    create_token(ann, "mine", **fields)
    token = ApiToken.objects.get()

    page = client.post(f"/account/tokens/{token.pk}/renew/", follow=True).text

    assert "cannot be renewed" in page
    assert "Renew for 90 days" not in page
    assert ApiToken.objects.get().expires_at == token.expires_at


def test_another_persons_token_is_out_of_reach(client):
    client.force_login(make_user())
    token = create_token(make_user("bob"), "bobs")

    pk = ApiToken.objects.get().pk
    assert client.post(f"/account/tokens/{pk}/revoke/").status_code == 404
    assert client.post(f"/account/tokens/{pk}/renew/").status_code == 404
    assert "bobs" not in client.get("/account/tokens/").content.decode()
    assert find_valid_token(token) is not None
