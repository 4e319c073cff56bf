"""A site with an agent, for clients that call it."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from runs.models import Agent
from tests.fakes.model_server import FakeServer
from tests.make import make_user
from tests.openai.site import answering_model
from tests.support.web_server import served
from tests.worker.run_parts import agent_on, ask_before


@pytest.fixture(scope="module")
def url(django_db_setup: None, redis_url: str) -> Iterator[str]:
    """Serve the site for all tests of the module."""
    with served() as (address, _):
        yield address


@pytest.fixture(scope="module")
def model() -> Iterator[FakeServer]:
    with answering_model() as server:
        yield server


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def agent(ann: User, model: FakeServer) -> Agent:
    """Make an agent that adds, and mails if somebody approves."""
    agent = agent_on(model, "add", "send_mail", owner=ann, slug="helper")
    ask_before(agent, "send_mail")
    return agent
