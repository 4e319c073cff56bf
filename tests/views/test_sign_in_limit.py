"""Failed sign-ins are counted per client address, and further ones refused."""

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.cache import caches

from runs.forms import accounts
from runs.services.accounts.login_link import create_login_link
from tests.make import make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

WRONG = {"username": "ann", "password": "wrong"}
RIGHT = {"username": "ann", "password": "secret"}


@pytest.fixture(autouse=True)
def limit(settings):
    settings.AXES_ENABLED, settings.AXES_FAILURE_LIMIT = True, 3
    caches["sign-in"].clear()
    yield
    caches["sign-in"].clear()


def sign_in(client, body, address="192.0.2.1"):
    return client.post("/sign-in/", body, REMOTE_ADDR=address)


def test_after_too_many_failures_the_right_password_is_refused_too(client):
    make_user("ann")

    statuses = [sign_in(client, WRONG).status_code for _ in range(4)]
    refused = sign_in(client, RIGHT)

    assert statuses == [200, 200, 429, 429]
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "900"
    assert "Try again in 15 minutes." in refused.content.decode()
    assert client.get("/").status_code == 302


def test_other_addresses_and_login_links_are_not_affected(client):
    ann = make_user("ann")
    for _ in range(4):
        sign_in(client, WRONG)

    assert sign_in(client, RIGHT, address="192.0.2.2").status_code == 302
    client.logout()
    link = f"/login/{create_login_link(ann)}/"
    assert client.post(link, REMOTE_ADDR="192.0.2.1").headers["Location"] == "/"


def test_unknown_names_count_and_cost_no_hash_once_refused(client, monkeypatch):
    hashed = []
    for number in range(3):
        sign_in(client, {"username": f"nobody{number}", "password": "x"})
    monkeypatch.setattr(MD5PasswordHasher, "encode", lambda *words: hashed.append(1))

    assert sign_in(client, {"username": "nobody", "password": "x"}).status_code == 429
    assert hashed == []


def test_a_success_does_not_reset_the_count(client):
    make_user("ann")
    for body in (WRONG, WRONG, RIGHT):
        sign_in(client, body)
        client.logout()

    assert sign_in(client, WRONG).status_code == 429


def test_each_failure_is_logged_without_the_password(client, caplog):
    make_user("ann")

    sign_in(client, {"username": "ann", "password": "hunter22-typed"})

    assert "192.0.2.1" in caplog.text
    assert "hunter22" not in caplog.text


def test_attempts_at_an_account_are_in_the_audit_log_until_they_are_refused(client):
    ann = make_user("ann")
    sign_in(client, {"username": "hunter22-typed-as-a-name", "password": "x"})
    sign_in(client, WRONG)
    sign_in(client, RIGHT)
    client.logout()
    for _ in range(5):
        sign_in(client, WRONG)

    entries = AuditEntry.objects.filter(noun="user", action__startswith="sign")
    assert [(one.action, one.by, one.note) for one in entries.order_by("pk")] == [
        ("sign-in failed", "", "192.0.2.1"),
        ("signed in", "ann", "192.0.2.1"),
    ]
    assert {one.thing_number for one in entries} == {ann.pk}


def test_a_login_link_is_in_the_audit_log(client):
    ann = make_user("ann")

    client.post(f"/login/{create_login_link(ann)}/")

    assert AuditEntry.objects.filter(action="signed in", by="ann").count() == 1


def test_only_a_few_passwords_are_checked_at_the_same_time(client, monkeypatch):
    make_user("ann")
    monkeypatch.setattr(accounts, "MAX_WAIT_SECONDS", 0.01)
    with accounts.PASSWORD_CHECKS, accounts.PASSWORD_CHECKS:
        busy = sign_in(client, RIGHT)
    free = sign_in(client, RIGHT)

    assert "Too many people are signing in" in busy.content.decode()
    assert free.status_code == 302


def test_without_a_limit_nothing_is_refused(client, settings):
    settings.AXES_ENABLED = False
    make_user("ann")

    assert [sign_in(client, WRONG).status_code for _ in range(5)] == [200] * 5
