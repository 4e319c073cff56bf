"""Copying agents, prompts and providers."""

import pytest

from runs.models import Agent
from runs.services.agents.manage import (
    archive_definition,
    duplicate_definition,
    unarchive_definition,
)
from runs.services.agents.save import save_agent
from tests.make import make_agent, make_provider, make_tool, make_user

pytestmark = pytest.mark.django_db


def test_an_agents_copy_has_its_tools_and_policies():
    ann = make_user()
    tool = make_tool(ann)
    agent = make_agent(ann, tools=(tool,))
    agent.uses.update(policy="ask")

    copy = duplicate_definition(agent, by=ann)

    assert [(use.tool, use.policy) for use in copy.uses.all()] == [(tool, "ask")]
    assert agent.uses.count() == 1


def test_changing_the_copys_instructions_leaves_the_original_alone():
    ann = make_user()
    agent = make_agent(ann)
    save_agent(agent, uses=[], instructions="Be brief.")

    copy = duplicate_definition(agent, by=ann)
    save_agent(copy, uses=[], instructions="Be long.")

    agent = Agent.objects.get(pk=agent.pk)
    assert agent.prompt.messages[0]["template"] == "Be brief."
    assert copy.prompt.messages[0]["template"] == "Be long."


def test_an_owners_copy_of_a_provider_keeps_the_key():
    provider = make_provider()
    provider.set_key("sk-1")
    provider.save()

    assert duplicate_definition(provider, by=provider.owner).key() == "sk-1"
    assert duplicate_definition(provider, by=make_user()).key() == ""


def test_a_copy_has_a_slug_of_its_own_and_is_not_archived():
    agent = make_agent()
    archive_definition(agent)

    copy = duplicate_definition(agent, by=agent.owner)

    assert copy.slug != agent.slug
    assert copy.archived_at is None


def test_archiving_twice_does_no_harm():
    agent = make_agent()

    archive_definition(agent)
    archive_definition(agent)
    assert agent not in Agent.objects.usable_by(agent.owner)

    unarchive_definition(agent)
    assert agent in Agent.objects.usable_by(agent.owner)
