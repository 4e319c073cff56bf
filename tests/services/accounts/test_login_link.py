"""Login links."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.models import LoginLink
from runs.services.accounts.login_link import (
    create_login_link,
    is_valid_login_link,
    use_login_link,
)

pytestmark = pytest.mark.django_db


def test_signs_its_user_in_once():
    ann = User.objects.create_user("ann")
    token = create_login_link(ann)

    assert use_login_link(token) == ann
    assert use_login_link(token) is None


def test_looking_does_not_use_it_up():
    token = create_login_link(User.objects.create_user("ann"))

    assert is_valid_login_link(token)
    assert is_valid_login_link(token)
    assert use_login_link(token) is not None
    assert not is_valid_login_link(token)


def test_is_stored_as_a_hash_only():
    token = create_login_link(User.objects.create_user("ann"))

    assert token not in str(LoginLink.objects.values().get())


def test_lives_fifteen_minutes():
    create_login_link(User.objects.create_user("ann"))

    left = LoginLink.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=14, seconds=50) < left <= timedelta(minutes=15)


def test_an_old_one_opens_nothing():
    token = create_login_link(User.objects.create_user("ann"))
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert use_login_link(token) is None


def test_one_of_an_inactive_user_opens_nothing():
    token = create_login_link(User.objects.create_user("ann"))
    User.objects.update(is_active=False)

    assert use_login_link(token) is None


def test_a_newer_link_ends_the_earlier_ones():
    ann, bob = User.objects.create_user("ann"), User.objects.create_user("bob")
    bobs, first = create_login_link(bob), create_login_link(ann)

    second = create_login_link(ann)

    assert use_login_link(first) is None
    assert use_login_link(second) == ann
    assert use_login_link(bobs) == bob


def test_old_ones_are_cleared_away():
    ann = User.objects.create_user("ann")
    create_login_link(ann)
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    create_login_link(ann)

    assert LoginLink.objects.count() == 1


def test_the_command_prints_the_address_as_its_last_line(settings):
    settings.PUBLIC_URL = "https://agents.example.org"
    ann = User.objects.create_user("ann")
    out = StringIO()

    call_command("login_link", "ann", stdout=out)

    start, token, end = out.getvalue().splitlines()[-1].rsplit("/", 2)
    assert (start, end) == ("https://agents.example.org/login", "")
    assert use_login_link(token) == ann


def test_the_command_refuses_a_user_who_may_not_sign_in():
    User.objects.create_user("ann", is_active=False)

    with pytest.raises(CommandError, match="not active"):
        call_command("login_link", "ann")
