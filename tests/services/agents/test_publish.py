"""Publishing: numbered versions of the draft that was looked at."""

import pytest

from runs.models import Agent, Run
from runs.services.agents.publish import is_published, publish_agent, publish_draft
from runs.services.agents.save import get_draft_token, save_agent
from runs.services.errors import DraftConflict, SpecRefused
from runs.services.runs.start import start_run
from tests.make import make_agent, make_prompt

pytestmark = pytest.mark.django_db


def test_the_same_draft_is_published_once():
    agent = make_agent()

    first = publish_draft(agent, by=agent.owner)
    second = publish_draft(agent, by=agent.owner)

    assert (first.is_new, second.is_new) == (True, False)
    assert second.version == first.version


def test_another_memory_makes_another_version():
    agent = make_agent()
    publish_agent(agent, by=agent.owner)
    agent.memory = True
    agent.save()

    assert publish_agent(agent, by=agent.owner).number == 2


def test_a_draft_that_was_saved_meanwhile_is_not_published():
    agent = make_agent()
    seen = get_draft_token(agent)
    save_agent(Agent.objects.get(), uses=[], instructions="Other words.")

    with pytest.raises(DraftConflict):
        publish_draft(agent, by=agent.owner, seen=seen)
    assert not agent.versions.exists()


def test_a_draft_that_cannot_run_is_not_published():
    broken = make_prompt(kind="react", template="{input}")
    agent = make_agent(broken.owner, kind="react", prompt=broken)

    with pytest.raises(SpecRefused):
        publish_draft(agent, by=agent.owner)
    assert not agent.versions.exists()


def test_runs_remember_as_the_published_version_says():
    agent = make_agent()
    publish_agent(agent, by=agent.owner)
    agent.memory = True
    agent.save()

    published = start_run(agent, by=agent.owner, inputs={"input": "x"})
    draft = start_run(agent, by=agent.owner, inputs={"input": "x"}, draft=True)

    assert published.conversation is None
    assert draft.conversation is not None
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    "change",
    [{"description": "Says something else."}, {"suggested_questions": ["Why?"]}],
)
def test_the_draft_is_published_until_it_changes(change):
    agent = make_agent()
    before = is_published(agent)
    publish_agent(agent, by=agent.owner)
    after = is_published(agent)
    Agent.objects.update(**change)
    agent.refresh_from_db()

    assert (before, after, is_published(agent)) == (False, True, False)
