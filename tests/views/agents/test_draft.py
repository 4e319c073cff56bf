"""How the draft of an agent stands."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Agent
from runs.services.agents.publish import publish_agent
from runs.views.agents.draft import get_draft_state
from tests.make import make_agent, make_tool

pytestmark = pytest.mark.django_db


def test_the_newest_version_and_the_tools_are_asked_for_once():
    agent = make_agent(tools=(make_tool(),))
    publish_agent(agent, by=agent.owner)
    agent = Agent.objects.get(pk=agent.pk)

    with CaptureQueriesContext(connection) as asked:
        state = get_draft_state(agent)

    assert state.is_published
    for table in ("runs_agentversion", "runs_agenttool"):
        assert sum(f'FROM "{table}"' in one["sql"] for one in asked) == 1


def test_the_page_of_the_draft_reads_its_tools_twice(client, ann):
    """For the requests that it shows, and for the list of all tools."""
    agent = make_agent(ann, tools=(make_tool(ann),))

    with CaptureQueriesContext(connection) as asked:
        assert client.get(f"/agents/{agent.pk}/edit/").status_code == 200

    assert sum('FROM "runs_agenttool"' in one["sql"] for one in asked) == 2
