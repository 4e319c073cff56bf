"""Publishing: numbered versions of the draft that was looked at."""

import pytest

from runs.models import Agent, Run
from runs.services.agents.publish import (
    is_published,
    publish_again,
    publish_agent,
    publish_draft,
)
from runs.services.agents.save import get_draft_token, save_agent
from runs.services.errors import (
    DraftConflict,
    GateNotMet,
    SpecRefused,
    VersionConflict,
    VersionUnchanged,
    VersionUnreadable,
)
from runs.services.gates.run import start_gate_experiment
from runs.services.gates.state import load_version_gate_state
from runs.services.runs.start import start_run
from tests.make import make_agent, make_prompt
from tests.makers.gates import finish_experiment, make_gate
from tools.models import AuditEntry

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


@pytest.fixture
def published():
    """An agent with two versions, whose draft differs from both."""
    agent = make_agent()
    for words in ("First words.", "Second words."):
        save_agent(agent, uses=[], instructions=words)
        publish_agent(agent, by=agent.owner)
    save_agent(agent, uses=[], instructions="A draft.")
    return agent


def again(agent, number=1, newest=2, **options):
    version = agent.versions.get(number=number)
    return publish_again(version, by=agent.owner, newest=newest, **options)


def test_an_older_version_is_published_again_as_a_new_one(published):
    first = published.versions.get(number=1)

    version = again(published)

    assert (version.number, version.note) == (3, "Version 1 again")
    assert (version.spec, version.definition) == (first.spec, first.definition)
    run = start_run(published, by=published.owner, inputs={"input": "x"})
    assert run.version == version
    assert not is_published(published)
    assert [one.number for one in published.versions.all()] == [3, 2, 1]
    entry = AuditEntry.objects.filter(action="published").latest("pk")
    assert (entry.thing, entry.thing_number) == (f"{published} v3", version.pk)


def test_a_version_is_published_again_only_in_place_of_the_one_that_was_seen(published):
    again(published)

    for number, newest in ((1, 2), (3, 3)):
        with pytest.raises(VersionConflict, match="runs use version 3"):
            again(published, number, newest)
    assert published.versions.count() == 3


def test_what_the_newest_version_has_is_not_published_again(published):
    again(published)

    with pytest.raises(VersionUnchanged, match="version 3 is the same as version 1"):
        again(published, newest=3)
    assert published.versions.count() == 3


def test_what_another_release_stored_is_not_published_again(published):
    spec = published.versions.get(number=1).spec
    type(spec).objects.filter(pk=spec.pk).update(body={"model": 3})

    with pytest.raises(VersionUnreadable, match="another release"):
        again(published)
    assert published.versions.count() == 2


def run_gate(agent, candidate, *, wrong=0):
    experiment = start_gate_experiment(agent.gate, by=agent.owner, candidate=candidate)
    finish_experiment(experiment, wrong=wrong, position=1)


def test_the_gate_is_met_by_an_experiment_with_the_version(published):
    make_gate(published)
    run_gate(published, "1", wrong=1)
    with pytest.raises(GateNotMet, match="version 1 does not meet the gate"):
        again(published)

    run_gate(published, "1")
    version = again(published)

    assert version.gate_result["reason"] == ""
    assert not AuditEntry.objects.filter(action="overrode").exists()


def test_the_baseline_of_an_experiment_has_not_passed_the_gate(published):
    make_gate(published)
    run_gate(published, "1")
    newest = published.versions.get(number=2)

    assert load_version_gate_state(newest).status == "missing"


def test_the_gate_applies_to_a_version_that_is_published_again(published):
    make_gate(published)

    with pytest.raises(GateNotMet, match="requires an experiment with version 1"):
        again(published)
    version = again(published, reason="Version 2 sends wrong refunds.")

    assert version.gate_result["reason"] == "Version 2 sends wrong refunds."
    entry = AuditEntry.objects.get(action="overrode")
    assert entry.note == "Version 2 sends wrong refunds."
