"""Runs of one conversation: what the model is told of the earlier ones."""

import pytest

from runs.models import Agent, Conversation, ProviderModel
from runs.services.conversations.messages import (
    can_continue_answer,
    continue_answer,
    send_message,
)
from runs.services.errors import AnswerUnfinished, NotAllowed
from runs.services.runs.rebuild_prompt import rebuild_prompt
from runs.services.runs.resume import resume_run
from runs.services.runs.start import select_turns, start_run
from runs.services.spec.freeze import freeze_agent
from runs.store.history import load_earlier_turns
from tests.fakes.model_server import model_server
from tests.make import (
    make_agent,
    make_attempt,
    make_prompt,
    make_provider,
    make_run,
    make_user,
)
from tests.support.threads import at_once
from tests.worker.run_parts import agent_on, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)


def next_in(run, question):
    """Ask the next question of the conversation, and execute it."""
    new = start_run(
        run.agent,
        by=run.owner,
        inputs={"input": question},
        conversation=run.conversation,
        draft=True,
    )
    return go_on(new)


def said(request):
    """Return the messages of a request, as pairs."""
    return [(one["role"], one["content"]) for one in request.body["messages"]]


def in_conversation(*statuses, **fields):
    """Make a conversation with one run of each status, and return it with them."""
    agent = make_agent(memory=True, **fields)
    conversation = Conversation.objects.create(owner=agent.owner, agent=agent)
    runs = [
        make_run(agent=agent, status=one, conversation=conversation) for one in statuses
    ]
    return conversation, runs


def test_of_two_messages_at_the_same_moment_one_is_refused():
    conversation, _ = in_conversation("succeeded")
    refused = []

    def send():
        agent = Agent.objects.get(pk=conversation.agent_id)
        inputs = {"input": "Next"}
        try:
            send_message(
                agent, by=agent.owner, inputs=inputs, conversation=conversation
            )
        except AnswerUnfinished as error:
            refused.append(error)

    at_once(send, send)

    assert len(refused) == 1
    assert conversation.runs.count() == 2


def test_a_run_of_an_agent_with_memory_begins_a_conversation():
    agent = make_agent(memory=True)
    run = start_run(agent, by=agent.owner, inputs={"input": "Who?"})

    assert (run.conversation.title, run.conversation.owner) == ("Who?", agent.owner)
    assert run.turn_ids == []


def test_an_agent_without_memory_has_none():
    agent = make_agent()

    assert start_run(agent, by=agent.owner, inputs={"input": "Q"}).conversation is None


def test_the_model_is_given_the_earlier_turns():
    with model_server(script=["Ann.", "In Rome."]) as server:
        first = executed(agent_on(server, memory=True), "Who?")
        second = next_in(first, "Where?")

    assert second.turn_ids == [first.pk]
    assert said(server.requests[1])[1:] == [
        ("user", "Who?"),
        ("assistant", "Ann."),
        ("user", "Where?"),
    ]
    assert rebuild_prompt(second.calls.get()).matches_digest


def test_a_text_prompt_gets_them_as_chat_history():
    text = "{tools} {tool_names} Before: {chat_history} Now: {input} {agent_scratchpad}"
    script = ["Final Answer: {Ann}", "Final Answer: In Rome."]
    with model_server(script=script) as server:
        prompt = make_prompt(kind="react", template=text)
        agent = agent_on(server, kind="react", memory=True, prompt=prompt)
        next_in(executed(agent, "Who?"), "Where?")

    message = said(server.requests[1])[0][1]
    assert "Before: Human: Who?\nAI: {Ann} Now: Where?" in message


def test_a_stopped_turn_has_no_answer_and_a_failed_one_is_no_turn():
    script = [
        {"tool_calls": [{"id": "1", "name": "add", "arguments": "{}"}]},
        {"fault": "401"},
        "Done.",
    ]
    with model_server(script=script) as server:
        agent = agent_on(server, memory=True, executor={"max_iterations": 1})
        stopped = executed(agent, "Long?")
        failed = next_in(stopped, "Broken?")
        last = next_in(failed, "And now?")

    assert [run.status for run in (stopped, failed, last)] == [
        "limit_reached",
        "failed",
        "succeeded",
    ]
    assert last.turn_ids == [stopped.pk]
    message = said(server.requests[-1])
    assert "There was no answer" in message[2][1]
    assert "Broken?" not in str(message)


def test_a_turn_that_is_resumed_later_changes_no_prompt_that_was_sent():
    looks = {"tool_calls": [{"id": "1", "name": "add", "arguments": "{}"}]}
    with model_server(script=[looks, "Done.", "Late answer."]) as server:
        agent = agent_on(server, memory=True, executor={"max_iterations": 1})
        stopped = executed(agent, "Long?")
        later = next_in(stopped, "And now?")
        resume_run(stopped, by=agent.owner, limits={"max_iterations": 5})
        go_on(stopped)

    assert stopped.output == "Late answer."
    assert rebuild_prompt(later.calls.get()).matches_digest


def test_a_stopped_answer_is_seen_as_far_as_it_was_written_and_continued():
    conversation, (stopped, unwritten) = in_conversation("canceled", "canceled")
    make_attempt(stopped, code="canceled", partial_text="Dear Mama, on")
    assert can_continue_answer(stopped)
    assert not can_continue_answer(unwritten)

    run = continue_answer(conversation, run=stopped, by=conversation.owner)
    assert run.turn_ids == [stopped.pk]
    assert run.inputs == {"input": "Continue your answer where it stopped."}
    assert [turn.answer for turn in load_earlier_turns(run)] == ["Dear Mama, on"]


def test_the_demo_cannot_continue_a_stopped_answer():
    conversation, (stopped,) = in_conversation("canceled")
    make_attempt(stopped, code="canceled", partial_text="Dear Mama, on")
    stopped.provider_key = make_provider(kind="demo").pk

    with pytest.raises(NotAllowed):
        continue_answer(conversation, run=stopped, by=conversation.owner)


def test_an_agent_without_memory_cannot_continue_a_stopped_answer():
    conversation, (stopped,) = in_conversation("canceled")
    make_attempt(stopped, code="canceled", partial_text="Dear Mama, on")
    Agent.objects.update(memory=False)
    stopped.refresh_from_db()

    with pytest.raises(NotAllowed):
        continue_answer(conversation, run=stopped, by=conversation.owner)


def test_the_oldest_turns_go_first_where_all_do_not_fit():
    conversation, runs = in_conversation("succeeded", "succeeded", "succeeded")
    for run, size in zip(runs, (4_000, 20_000, 10_000), strict=True):
        run.output = "x" * size
        run.save()

    assert select_turns(freeze_agent(conversation.agent), conversation) == [
        runs[1].pk,
        runs[2].pk,
    ]


@pytest.mark.parametrize("known_by", ["the agent", "the provider"])
def test_a_small_context_leaves_less_room(known_by):
    limit = {"context_tokens": 2_000} if known_by == "the agent" else {}
    conversation, runs = in_conversation("succeeded", "succeeded", executor=limit)
    if known_by == "the provider":
        ProviderModel.objects.create(
            provider=conversation.agent.provider, name="model-a", context_tokens=2_000
        )
    runs[0].output = "x" * 4_000
    runs[0].save()

    assert select_turns(freeze_agent(conversation.agent), conversation) == [runs[1].pk]


def test_runs_that_are_not_over_or_canceled_are_no_turns():
    conversation, runs = in_conversation(
        "running", "queued", "canceled", "limit_reached"
    )

    assert select_turns(freeze_agent(conversation.agent), conversation) == [runs[-1].pk]


def test_somebody_elses_conversation_is_refused():
    conversation, _ = in_conversation()
    with pytest.raises(NotAllowed):
        start_run(
            conversation.agent,
            by=make_user(),
            inputs={"input": "Q"},
            conversation=conversation,
        )
