"""`POST /api/v1/runs/{id}/fork`."""

import pytest

from runs.models import Conversation, Run
from runs.store.specs import load_spec
from tests.api.make_client import Api, fields_of
from tests.make import (
    make_agent,
    make_call,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_user,
)
from tools.spec import ToolSpec

pytestmark = pytest.mark.django_db


def failed_run(**fields) -> Run:
    tools = (ToolSpec(name="calculator", effect="read"), ToolSpec(name="mail"))
    run = make_run(status="failed", spec=make_spec(tools=tools), **fields)
    make_call(run)
    make_step(run, elapsed=0.1)
    return run


def fork(run, body=None):
    return Api(run.owner).post(f"runs/{run.pk}/fork", body)


def test_forks_after_the_last_step_with_another_model():
    run = failed_run()
    provider = make_provider(run.owner)
    answer = fork(run, {"model": "other", "provider": provider.slug, "parameters": {}})

    new = Run.objects.get(pk=answer.json()["id"])
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/runs/{new.pk}"
    assert answer.json()["status"] == "queued"
    assert answer.json()["usage"]["cost"] == 0
    assert (new.forked_from, new.source) == (run, "api")
    assert load_spec(new.spec).model.model == "other"
    assert load_spec(new.spec).model.provider_id == provider.pk


def test_edits_the_observation_of_a_step():
    answer = fork(failed_run(), {"step": 0, "observation": "5\0", "failed": True})
    step = answer.json()["steps"][0]

    assert (step["observation"], step["error"]) == ("5\ufffd", True)


def test_edits_a_reply_prompt_tools_and_limits():
    run = failed_run()
    calls = [{"name": "calculator", "arguments": {"expression": "1"}}]
    body = {
        "model_call": 0,
        "reply": {"text": "Hm.", "tool_calls": calls},
        "prompt": [{"role": "user", "template": "Do {input}"}],
        "tools": {"mail": "off", "calculator": "ask"},
        "limits": {"max_iterations": None, "tokens": 500},
    }
    new = Run.objects.get(pk=fork(run, body).json()["id"])
    spec = load_spec(new.spec)

    assert new.calls.get().reply["text"] == "Hm."
    assert spec.prompt.messages[0].template == "Do {input}"
    assert [(tool.name, tool.asks) for tool in spec.tools] == [("calculator", True)]
    assert spec.executor.max_iterations is None
    assert spec.executor.budget.tokens == 500


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"step": 7}, "step", id="no step"),
        pytest.param({"step": -1}, "step", id="below zero"),
        pytest.param({"model_call": 10**30}, "model_call", id="too large"),
        pytest.param({"step": 0, "model_call": 0}, "step", id="both"),
        pytest.param({"colour": 1}, "colour", id="unknown field"),
        pytest.param({"tools": {"nope": "off"}}, "tools", id="no tool"),
        pytest.param({"tools": {"mail": "deny"}}, "tools.mail", id="no policy"),
        pytest.param({"inputs": {"city": "Rome"}}, "inputs.city", id="no such input"),
        pytest.param({"inputs": {"input": " "}}, "inputs.input", id="no question"),
        pytest.param({"inputs": {"input": 7}}, "inputs.input", id="no text"),
        pytest.param({"agents": {"nope": "allow"}}, "agents", id="no agent"),
        pytest.param({"provider": "nope\0"}, "provider", id="no provider"),
        pytest.param({"observation": "x"}, "fork", id="not here"),
        pytest.param({"prompt": "{city}"}, "fork.prompt", id="no value"),
        pytest.param({"limits": {"max_iterations": 1}}, "fork", id="used up already"),
    ],
)
def test_names_the_field_that_is_wrong(body, field):
    answer = fork(failed_run(), body)

    assert answer.status_code == 422
    assert field in fields_of(answer)
    assert Run.objects.count() == 1


def test_edits_the_inputs_and_the_agents():
    run = failed_run()
    helper, hidden = make_agent(run.owner, name="helper"), make_agent()
    body = {
        "inputs": {"input": "What is 3 + 3?", "city": "Rome"},
        "prompt": "In {city}: {input}",
        "agents": {helper.slug: "ask"},
        "tools": {"mail": "off"},
    }
    answer = fork(run, body)
    new = Run.objects.get(pk=answer.json()["id"])
    again = fork(new, {"step": 0, "agents": {helper.slug: "off"}}).json()["id"]

    assert answer.json()["inputs"] == body["inputs"]
    assert new.title == "What is 3 + 3?"
    assert new.fork_edits == ["inputs", "prompt", "tools"]
    tools = [(one.name, one.asks) for one in load_spec(new.spec).tools]
    assert tools == [("calculator", False), (helper.slug, True)]
    names = [one.name for one in load_spec(Run.objects.get(pk=again).spec).tools]
    assert names == ["calculator"]
    assert fields_of(fork(run, {"agents": {hidden.slug: "allow"}})) == ["agents"]


def test_a_turn_of_a_conversation_goes_on_in_a_branch():
    run = failed_run()
    conversation = Conversation.objects.create(
        owner=run.owner, agent=run.agent, title="Sums"
    )
    Run.objects.filter(pk=run.pk).update(conversation=conversation)
    branch = Conversation.objects.get(pk=fork(run).json()["conversation"])

    assert (branch.branch_of, branch.branch_at, branch.title) == (
        conversation,
        run.pk,
        "Sums",
    )


def test_hides_what_is_someone_elses():
    run = failed_run()

    assert Api(make_user()).post(f"runs/{run.pk}/fork").status_code == 404


def test_who_may_only_use_the_agent_cannot_write_its_replies():
    agent = make_agent(visibility="everyone")
    run = make_run(make_user(), agent=agent, status="failed")
    make_call(run)
    answer = fork(run, {"model_call": 0, "reply": {"text": "x"}})

    assert answer.status_code == 403
    assert fields_of(answer) == ["fork"]
