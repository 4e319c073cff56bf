"""Prompts of the playground: one run of a bare agent for each column."""

import pytest

from runs.engine.types import PromptMessage
from runs.models import Agent, Run
from runs.services.agentfile.export import export_agentfile
from runs.services.errors import InputsRefused, SpecRefused
from runs.services.prompts.trials import PromptTrial, start_prompt_trials
from tests.make import make_agent, make_provider, make_user

pytestmark = pytest.mark.django_db


def column(provider, *texts, **fields):
    messages = tuple(PromptMessage(role="user", template=text) for text in texts)
    return PromptTrial(messages, provider, "model-a", **fields)


def test_each_column_is_a_test_run_of_one_round_with_an_end():
    ann = make_user()
    provider = make_provider(ann)
    tries = [column(provider, "A {x}"), column(provider, "B {input}")]

    one, two = start_prompt_trials(tries, by=ann, inputs={"x": "1", "input": "2"})

    assert (one.is_test, one.status, one.source) == (True, "queued", "page")
    assert (one.inputs, two.inputs) == ({"x": "1"}, {"input": "2"})
    limits = one.spec.body["executor"]
    assert limits["max_iterations"] == 1
    assert limits["max_execution_time"] == 300.0
    assert "tools" not in one.spec.body


def test_a_person_has_one_bare_agent_that_nothing_lists():
    ann = make_user()
    mine = make_agent(ann)

    for _ in range(2):
        start_prompt_trials([column(make_provider(ann), "A")], by=ann, inputs={})

    bare = Agent.objects.get(is_playground=True)
    assert bare.owner == ann
    assert list(Agent.objects.usable_by(ann)) == [mine]
    assert bare.slug not in export_agentfile()


@pytest.mark.parametrize(
    ("texts", "refusal"),
    [
        pytest.param(["{x"], SpecRefused, id="brace"),
        pytest.param(["{x}"], InputsRefused, id="no value"),
    ],
)
def test_all_start_or_none(texts, refusal):
    ann = make_user()
    provider = make_provider(ann)
    tries = [column(provider, "Fine."), column(provider, *texts)]

    with pytest.raises(refusal):
        start_prompt_trials(tries, by=ann, inputs={})
    assert not Run.objects.exists()
