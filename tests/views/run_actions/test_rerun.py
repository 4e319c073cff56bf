"""The page that runs an agent again."""

import pytest

from runs.models import Run
from runs.services.agents.publish import publish_agent
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import make_agent, make_prompt, make_run, make_user

pytestmark = pytest.mark.django_db


def prompt_with(owner, words):
    return make_prompt(owner, messages=[{"role": "user", "template": words}])


def published(owner, words):
    """Return a run of version 1, whose agent asks for `words`."""
    agent = make_agent(owner, prompt=prompt_with(owner, words))
    version = publish_agent(agent, by=owner)
    inputs = {"input": "Plan", "city": "Oslo"}
    run = make_run(
        owner, agent=agent, version=version, spec=version.spec, inputs=inputs
    )
    return agent, run


def newest() -> Run:
    return Run.objects.order_by("-pk")[0]


def test_shows_the_inputs_to_edit(client, ann):
    _, run = published(ann, "{input} in {city}")
    text = client.get(f"/runs/{run.pk}/again/").content.decode()

    assert ">\nOslo</textarea>" in text
    assert "has not changed since" in text


def test_hides_what_is_someone_elses(client, ann):
    run = make_run(make_user("bob"))

    assert client.get(f"/runs/{run.pk}/again/").status_code == 404
    assert client.post(f"/runs/{run.pk}/again/").status_code == 404


def test_runs_with_edited_inputs(client, ann):
    _, run = published(ann, "{input} in {city}")
    client.post(f"/runs/{run.pk}/again/", {"input": "Plan", "in-city": "Bergen"})

    assert newest().inputs == {"input": "Plan", "city": "Bergen"}
    assert newest().title == "Plan"


def test_runs_the_newest_agent_or_the_same(client, ann):
    agent, run = published(ann, "{input} in {city}")
    agent.prompt = prompt_with(ann, "{input} for {people}")
    agent.save()
    version = publish_agent(agent, by=ann)
    text = client.get(f"/runs/{run.pk}/again/").content.decode()
    client.post(f"/runs/{run.pk}/again/", {"which": "same"})
    same = newest()
    client.post(f"/runs/{run.pk}/again/", {"which": "newest", "in-people": "2"})

    assert "Used only by the latest agent." in text
    assert (same.spec, same.version) == (run.spec, run.version)
    assert same.inputs == run.inputs
    assert newest().version == version
    assert newest().inputs == {"input": "Plan", "people": "2"}


def test_a_missing_input_is_said_at_its_field(client, ann):
    _, run = published(ann, "{input} in {city}")
    answer = client.post(f"/runs/{run.pk}/again/", {"input": " "})

    assert "input" in answer.context["form"].errors
    assert newest() == run


def test_the_draft_of_then_runs_again_as_it_was(client, ann):
    agent = make_agent(ann)
    run = make_run(ann, agent=agent, spec=get_or_create_spec(freeze_agent(agent)))
    agent.model = "other"
    agent.save()
    client.post(f"/runs/{run.pk}/again/", {"which": "same"})

    assert newest().spec == run.spec
    assert newest().version is None
