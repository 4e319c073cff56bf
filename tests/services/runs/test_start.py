"""Starting a run."""

import pytest

from runs.models import Run
from runs.services.agents.publish import publish_agent
from runs.services.errors import InputsRefused, NotAllowed, SpecRefused
from runs.services.runs.start import start_run
from tests.make import make_agent, make_prompt, make_run, make_tool, make_user

pytestmark = pytest.mark.django_db


def test_queues_a_run_with_a_frozen_spec():
    agent = make_agent(tools=(make_tool(name="look"),))
    run = start_run(agent, by=agent.owner, inputs={"input": "Why?\nReally."})

    assert (run.status, run.title) == ("queued", "Why?")
    assert run.spec.body["tools"][0]["name"] == "look"


def test_runs_the_newest_published_version_unless_the_draft_is_asked_for():
    agent = make_agent()
    version = publish_agent(agent, by=agent.owner)
    agent.model = "model-b"
    agent.save()

    run = start_run(agent, by=agent.owner, inputs={"input": "Go."})
    draft = start_run(agent, by=agent.owner, inputs={"input": "Go."}, draft=True)

    assert (run.version, run.spec.body["model"]["model"]) == (version, "model-a")
    assert (draft.version, draft.spec.body["model"]["model"]) == (None, "model-b")


def test_names_every_wrong_input():
    agent = make_agent(prompt=make_prompt(template="{input} {city} {agent_scratchpad}"))
    with pytest.raises(InputsRefused) as refused:
        start_run(agent, by=agent.owner, inputs={"city": ["a"], "town": "b"})

    assert {error.field for error in refused.value.errors} == {"input", "city", "town"}
    assert not Run.objects.exists()


def test_refuses_an_agent_that_could_not_run():
    agent = make_agent(executor={"max_iterations": -1})
    with pytest.raises(SpecRefused, match="max_iterations|rounds"):
        start_run(agent, by=agent.owner, inputs={"input": "Go."})


def test_refuses_an_archived_agent():
    run = make_run(status="succeeded")
    run.agent.archived_at = run.ended_at
    with pytest.raises(NotAllowed):
        start_run(run.agent, by=run.owner, inputs={"input": "Go."})


def test_refuses_an_agent_that_is_somebody_elses():
    with pytest.raises(NotAllowed, match="You cannot use"):
        start_run(make_agent(), by=make_user(), inputs={"input": "Go."})


@pytest.mark.parametrize("question", ["", " \n\t "])
def test_refuses_an_empty_question_but_not_another_empty_variable(question):
    agent = make_agent(prompt=make_prompt(template="{input} {city} {agent_scratchpad}"))
    with pytest.raises(InputsRefused) as refused:
        start_run(agent, by=agent.owner, inputs={"input": question, "city": ""})

    assert [error.field for error in refused.value.errors] == ["input"]
