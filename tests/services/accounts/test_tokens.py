"""API tokens."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.models import ApiToken
from runs.services.accounts import tokens
from runs.services.accounts.tokens import create_token, find_valid_token, revoke_token
from runs.services.errors import TooManyTokens
from tests.make import make_user
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db


def test_opens_the_door_for_its_user():
    ann = User.objects.create_user("ann")
    User.objects.create_user("bob")

    assert find_valid_token(create_token(ann)).user == ann


def test_is_stored_as_a_hash_only():
    token = create_token(User.objects.create_user("ann"))

    row = ApiToken.objects.values().get()
    assert token.startswith("as_")
    assert len(token) > 43
    assert token not in str(row)


@pytest.mark.parametrize("token", ["", "as_", "as_x", "\ud800", "as_" + "x" * 5000])
def test_a_wrong_one_opens_nothing(token):
    create_token(User.objects.create_user("ann"))

    assert find_valid_token(token) is None


def test_a_revoked_one_opens_nothing():
    token = create_token(User.objects.create_user("ann"))

    assert revoke_token(ApiToken.objects.get())
    assert find_valid_token(token) is None
    assert not revoke_token(ApiToken.objects.get())


def test_one_of_an_inactive_user_opens_nothing():
    token = create_token(User.objects.create_user("ann", is_active=False))

    assert find_valid_token(token) is None


def test_its_use_is_noted_once_a_minute(django_assert_max_num_queries):
    token = create_token(User.objects.create_user("ann"))

    with django_assert_max_num_queries(2):
        find_valid_token(token)
    with django_assert_max_num_queries(1):
        find_valid_token(token)
    noted = ApiToken.objects.get().last_used_at
    assert timezone.now() - noted < timedelta(seconds=10)


def test_its_use_is_noted_again_after_a_minute():
    token = create_token(User.objects.create_user("ann"))
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))

    find_valid_token(token)

    noted = ApiToken.objects.get().last_used_at
    assert timezone.now() - noted < timedelta(seconds=10)


def test_the_command_prints_a_token_as_its_last_line():
    ann = User.objects.create_user("ann")
    out = StringIO()

    call_command("create_token", "ann", stdout=out)

    assert find_valid_token(out.getvalue().splitlines()[-1]).user == ann


def test_the_command_refuses_an_unknown_user():
    with pytest.raises(CommandError, match="User 'eve' not found"):
        call_command("create_token", "eve")


def test_an_expired_one_opens_nothing():
    ann = User.objects.create_user("ann")

    assert (
        find_valid_token(create_token(ann, lifetime=timedelta(seconds=5))) is not None
    )
    assert find_valid_token(create_token(ann, lifetime=timedelta(0))) is None


def test_the_command_limits_scopes_and_lifetime():
    User.objects.create_user("ann")

    call_command("create_token", "ann", "--scope=read", "--days=7", stdout=StringIO())

    made = ApiToken.objects.get()
    assert (made.allows("read"), made.allows("run")) == (True, False)
    assert made.expires_at - timezone.now() > timedelta(days=6)
    with pytest.raises(CommandError, match="--days must be"):
        call_command("create_token", "ann", "--days=0")


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_create_no_more_tokens_than_are_allowed(monkeypatch):
    monkeypatch.setattr(tokens, "MAX_TOKENS", 3)
    ann = make_user()
    refused = []

    def create():
        try:
            create_token(ann)
        except TooManyTokens as error:
            refused.append(str(error))

    at_once(*[create] * 8)

    assert ApiToken.objects.filter(user=ann).count() == 3
    assert refused == ["At most 3 tokens per user. Revoke one first."] * 5
