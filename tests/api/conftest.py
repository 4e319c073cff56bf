"""A person and a client with a token, for modules without others of their own."""

import pytest
from django.contrib.auth.models import User

from tests.api.make_client import Api
from tests.make import make_user


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def api(ann: User) -> Api:
    """A client whose token may do what pages can, except administration."""
    return Api(ann, scopes=["read", "run", "build"])
