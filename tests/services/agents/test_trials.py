"""Tests of an agent: a chat with the draft, and runs side by side."""

import pytest
from django.utils import timezone

from runs.models import Conversation, Provider, Run
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import save_agent
from runs.services.agents.trials import (
    TrialVariant,
    start_comparison,
    start_test_chat_run,
)
from runs.services.errors import AnswerUnfinished, InputsRefused
from tests.make import fit, make_agent, make_provider, make_tool, make_user

pytestmark = pytest.mark.django_db


def test_a_chat_runs_the_draft_as_a_test():
    agent = make_agent()
    publish_agent(agent, by=agent.owner)

    first = start_test_chat_run(
        agent, by=agent.owner, inputs={"input": "a"}, conversation=None
    )
    conversation = first.conversation
    Run.objects.update(status="succeeded", **fit("succeeded", timezone.now()))
    start_test_chat_run(
        agent, by=agent.owner, inputs={"input": "b"}, conversation=conversation
    )

    assert conversation.is_test
    assert conversation.runs.count() == 2
    assert {run.is_test for run in Run.objects.all()} == {True}
    assert {run.version for run in Run.objects.all()} == {None}


def test_a_message_waits_for_the_answer_to_the_one_before():
    agent = make_agent(memory=True)
    first = start_test_chat_run(
        agent, by=agent.owner, inputs={"input": "a"}, conversation=None
    )

    with pytest.raises(AnswerUnfinished, match="still being written"):
        start_test_chat_run(
            agent,
            by=agent.owner,
            inputs={"input": "b"},
            conversation=first.conversation,
        )
    assert Run.objects.get() == first


def test_a_message_to_an_agent_without_memory_does_not_wait():
    agent = make_agent()
    first = start_test_chat_run(
        agent, by=agent.owner, inputs={"input": "a"}, conversation=None
    )

    start_test_chat_run(
        agent, by=agent.owner, inputs={"input": "b"}, conversation=first.conversation
    )

    assert Run.objects.count() == 2


def test_a_turn_that_is_refused_leaves_no_empty_chat():
    agent = make_agent()

    with pytest.raises(InputsRefused):
        start_test_chat_run(
            agent, by=agent.owner, inputs={"input": " "}, conversation=None
        )
    assert not Conversation.objects.exists()


def test_versions_and_models_run_side_by_side():
    agent = make_agent()
    version = publish_agent(agent, by=agent.owner)
    save_agent(agent, uses=[], instructions="Newer.")
    other = make_provider(agent.owner)

    runs = start_comparison(
        agent,
        by=agent.owner,
        inputs={"input": "x"},
        contenders=[
            TrialVariant(),
            TrialVariant(version),
            TrialVariant(version, other, "model-z"),
        ],
    )

    assert [run.version for run in runs] == [None, version, None]
    models = [run.spec.body["model"] for run in runs]
    assert [one["model"] for one in models] == ["model-a", "model-a", "model-z"]
    assert models[2]["provider_id"] == other.pk
    assert Provider.objects.get(pk=agent.provider_id).slug == models[0]["provider"]


def test_each_gets_the_inputs_its_prompt_asks_for():
    agent = make_agent()
    version = publish_agent(agent, by=agent.owner)
    save_agent(agent, uses=[], instructions="In {city}.")

    draft, old = start_comparison(
        agent,
        by=agent.owner,
        inputs={"input": "x", "city": "Oslo"},
        contenders=[TrialVariant(), TrialVariant(version)],
    )

    assert draft.inputs == {"input": "x", "city": "Oslo"}
    assert old.inputs == {"input": "x"}


def test_all_of_them_start_or_none():
    agent = make_agent()
    version = publish_agent(agent, by=agent.owner)
    save_agent(agent, uses=[], instructions="In {city}.")

    with pytest.raises(InputsRefused):
        start_comparison(
            agent,
            by=agent.owner,
            inputs={"input": "x"},
            contenders=[TrialVariant(version), TrialVariant()],
        )
    assert not Run.objects.exists()


def test_a_test_chat_asks_before_each_call_of_an_imported_delete():
    owner = make_user("ann")
    tool = make_tool(owner, effect="idempotent", approval="always")
    agent = make_agent(owner, tools=(tool,))

    run = start_test_chat_run(agent, by=owner, inputs={"input": "a"}, conversation=None)

    assert [one["asks"] for one in run.spec.body["tools"]] == [True]
