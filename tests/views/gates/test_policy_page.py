"""The page that checks the draft's rules against stored runs."""

import pytest

from runs.models import Agent, AgentTool
from runs.services.spec.freeze import freeze_agent
from tests.make import (
    make_agent,
    make_call,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
)
from tests.support.html import text_of

pytestmark = pytest.mark.django_db


def make_checked_agent(owner, runs: int = 2) -> Agent:
    """Make an agent whose draft asks for calls that were made without asking."""
    agent = make_agent(owner)
    tool = make_tool(name="pay")
    AgentTool.objects.create(agent=agent, tool=tool, policy="allow")
    spec = make_spec(freeze_agent(agent))
    for _ in range(runs):
        run = make_run(agent=agent, status="succeeded", spec=spec)
        make_step(run, call=make_call(run), tool="pay", effect="side_effect")
    AgentTool.objects.update(policy="ask")
    return agent


def test_says_in_how_many_runs_the_draft_decides_otherwise(client, ann):
    agent = make_checked_agent(ann)

    page = client.get(f"/agents/{agent.pk}/policy/")

    assert "The draft decides differently in 2 of 2 runs" in text_of(page)
    assert "Would await approval 2" in text_of(page)
    assert "pay 2 0 2 0" in text_of(page)
    run = agent.runs.order_by("-pk").first()
    assert f'href="/runs/{run.pk}/?step=1"' in page.content.decode()


def test_the_publish_page_links_it(client, ann):
    agent = make_checked_agent(ann)

    page = client.get(f"/agents/{agent.pk}/publish/").content.decode()

    assert f"/agents/{agent.pk}/policy/" in page


def test_says_so_without_real_runs(client, ann):
    agent = make_checked_agent(ann, runs=0)

    assert "No real runs" in text_of(client.get(f"/agents/{agent.pk}/policy/"))


def test_filters_by_change(client, ann):
    agent = make_checked_agent(ann)

    page = client.get(f"/agents/{agent.pk}/policy/?show=asks").content.decode()

    assert 'show=asks" aria-current="true"' in page


@pytest.mark.parametrize("days", ["0", "366", "x", "1e3", "9" * 30])
def test_a_wrong_number_of_days_is_named_and_30_are_checked(client, ann, days):
    agent = make_checked_agent(ann)

    page = client.get(f"/agents/{agent.pk}/policy/", {"days": days})

    assert "Enter a number of days from 1 to 365." in text_of(page)
    assert "of the last 30 days" in text_of(page)


def test_a_user_of_the_agent_does_not_see_it(client, ann):
    agent = make_checked_agent(make_user())

    assert client.get(f"/agents/{agent.pk}/policy/").status_code == 404
