"""The tools and agents that an agent can add."""

import re

import pytest

from runs.services.agents.save import ToolAssignment, save_agent
from tests.make import make_agent, make_tool, make_user

pytestmark = pytest.mark.django_db


def groups_in(page):
    return re.findall(r'<tbody data-group="([^"]*)"', page)


def test_lists_what_the_agent_does_not_use_in_groups(client, ann):
    used, free = make_tool(ann, name="used"), make_tool(ann, name="free", kind="http")
    helper, agent = make_agent(ann, name="Helper"), make_agent(ann)
    save_agent(agent, uses=[ToolAssignment(used.pk, "ask")], instructions="")

    part = client.get(f"/agents/library/?agent={agent.pk}").content.decode()
    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    assert groups_in(part) == ["HTTP request", "Agents"]
    assert f'name="tool-{free.pk}"' in part
    assert f'name="agent-{helper.pk}"' in part
    assert f'name="tool-{used.pk}"' not in part
    assert f'name="tool-{used.pk}"' in page
    assert f'name="tool-{free.pk}"' not in page


def test_a_new_agent_can_add_everything_that_one_may_use(client, ann):
    mine, theirs = make_tool(ann), make_tool(make_user())

    part = client.get("/agents/library/").content.decode()

    assert f'name="tool-{mine.pk}"' in part
    assert f'name="tool-{theirs.pk}"' not in part


def test_without_a_script_the_page_itself_shows_the_library(client, ann):
    agent, tool = make_agent(ann), make_tool(ann)

    page = client.get(f"/agents/{agent.pk}/edit/?library=open").content.decode()

    assert 'href="?library=open#agent-library"' in page
    assert f'name="tool-{tool.pk}"' in page


@pytest.mark.parametrize("key", ["", "x", "999999", "²"])
def test_the_agent_of_another_person_is_not_found(client, ann, key):
    key = key or make_agent(make_user()).pk

    assert client.get(f"/agents/library/?agent={key}").status_code == 404
