"""One agent in the hands of another."""

import pytest
from django.test import Client

from runs.models import AgentTool
from runs.services.spec.freeze import freeze_agent
from tests.make import make_agent, make_tool, make_user
from tests.views.agents.test_form import typed

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client):
    user = make_user("ann")
    client.force_login(user)
    return user


def pair(owner, **overrides):
    """Return an agent, and one that it may call."""
    agent = make_agent(owner)
    called = make_agent(owner, name="helper", description="Helps out.")
    AgentTool.objects.create(agent=agent, sub_agent=called, overrides=overrides)
    return agent, called


def address(agent, called) -> str:
    return f"/agents/{agent.pk}/agents/{called.pk}/"


def test_shows_what_the_agent_says_and_what_differs(client, ann):
    agent, called = pair(ann, calls_per_run=3)
    page = client.get(address(agent, called)).content.decode()

    assert 'placeholder="Helps out."' in page
    assert 'value="3"' in page
    form = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    assert f'href="{address(agent, called)}"' in form


def test_what_is_saved_is_what_a_run_gets_and_the_agents_form_keeps_it(client, ann):
    agent, called = pair(ann, approval_hours=2)
    sent = {
        **{"policy": "ask", "name": "write", "description": "Writes."},
        **{"calls_per_run": "2", "output_limit": "500"},
        **{"on_error": "end", "return_direct": "yes"},
    }
    answer = client.post(address(agent, called), sent)
    client.post(
        f"/agents/{agent.pk}/edit/", typed(ann, **{f"agent-{called.pk}": "ask"})
    )

    (spec,) = freeze_agent(agent).tools
    assert answer.headers["Location"] == f"/agents/{agent.pk}/edit/"
    assert (spec.name, spec.description, spec.asks) == ("write", "Writes.", True)
    assert (spec.calls_per_run, spec.output_limit) == (2, 500)
    assert (spec.on_error, spec.return_direct) == ("end", True)
    assert agent.uses.get().overrides["approval_hours"] == 2


def test_an_agent_that_was_off_comes_into_use(client, ann):
    agent, called = make_agent(ann), make_agent(ann)
    client.post(address(agent, called), {"policy": "default"})

    assert agent.uses.get().sub_agent == called


def test_a_circle_and_a_name_in_use_are_refused(client, ann):
    agent, called = pair(ann)
    AgentTool.objects.create(agent=agent, tool=make_tool(ann, name="write"), position=1)
    message = client.post(address(agent, called), {"policy": "ask", "name": "write"})
    back = client.post(address(called, agent), {"policy": "ask"})

    assert "Two tools are named &#x27;write&#x27;" in message.content.decode()
    assert "An agent cannot call itself" in back.content.decode()
    assert agent.uses.get(sub_agent=called).overrides == {}
    assert not called.uses.exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"calls_per_run": "0"}, "1 or more", id="no call"),
        pytest.param({"name": "no[name]"}, "is not a valid tool name", id="name"),
        pytest.param({"policy": "maybe"}, "valid choice", id="policy"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field(client, ann, given, says):
    agent, called = pair(ann)
    page = client.post(address(agent, called), {"policy": "default", **given})

    assert says in page.content.decode()
    assert agent.uses.get().overrides == {}


def test_what_is_someone_elses_is_hidden(client, ann):
    agent, called = pair(ann)
    hidden, shared = make_agent(), make_agent(visibility="everyone")

    for one, other in ((agent, hidden), (shared, called), (agent, agent)):
        assert client.get(address(one, other)).status_code == 404
        assert client.post(address(one, other), {"policy": "ask"}).status_code == 404
    assert Client().get(address(agent, called)).status_code == 302
