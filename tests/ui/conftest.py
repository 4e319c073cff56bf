"""Fixtures of the tests of what pages share: who looks."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.make import make_user


@pytest.fixture
def ann(client: Client, db: None) -> User:
    """Someone who is signed in."""
    user = make_user("ann")
    client.force_login(user)
    return user
