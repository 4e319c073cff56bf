"""Forking: what is copied, what is asked anew, what is refused."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.engine.types import ModelSettings, PromptMessage, PromptSpec, ToolCall
from runs.models import Conversation, Run
from runs.services.approvals.answer import approve_step
from runs.services.errors import (
    CannotFork,
    InputsRefused,
    NotAllowed,
    SpecRefused,
    TooManyRuns,
)
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run
from runs.services.forks.point import get_end_row, load_fork_point
from runs.services.health.invariants import check_invariants
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.rebuild_prompt import rebuild_prompt
from runs.services.runs.resume import resume_run
from runs.services.runs.start import start_run
from runs.store.specs import load_spec
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_call, make_run, make_step, make_user
from tests.worker import functions
from tests.worker.run_parts import (
    FAULTS,
    agent_on,
    ask_before,
    call,
    calls,
    executed,
    go_on,
)
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

THREE = [call("add", a=1, b=2), call("add", a=3, b=3), "It is 6."]


def forked(run: Run, row: int, **edits) -> Run:
    return fork_run(
        load_fork_point(run, row), by=run.agent.owner, edits=ForkEdits(**edits)
    )


def sent(server, number: int = -1) -> str:
    """Return what the model was sent, as text."""
    return json.dumps(server.requests[number].body["messages"])


def agreeing(run: Run) -> list[bool]:
    """Return, for each model call, whether its rebuilt prompt is what was sent."""
    return [
        getattr(rebuild_prompt(one), "matches_digest", False) for one in run.calls.all()
    ]


def test_an_edited_observation_reaches_the_model_and_earlier_steps_cost_nothing():
    with model_server(script=[*THREE, "It is 60."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = go_on(forked(parent, 4, observation="60"))

        assert len(server.requests) == 4
        assert '"content": "60"' in sent(server)
    assert (fork.status, fork.output) == ("succeeded", "It is 60.")
    assert (fork.forked_from, fork.fork_row, fork.fork_index) == (parent, 4, 2)
    assert [(c.is_copied, c.number) for c in fork.calls.all()] == [
        (True, 0),
        (True, 1),
        (False, 2),
    ]
    assert [s.observation for s in fork.steps.order_by("index")] == ["3", "60"]
    assert [s.copied_from for s in fork.steps.order_by("index")] == list(
        parent.steps.order_by("index")
    )
    assert fork.model_calls == 1
    assert fork.input_tokens == fork.calls.last().input_tokens
    assert fork.rounds == parent.rounds
    assert agreeing(fork) == [True, True, True]
    assert list(check_invariants()) == []


def test_an_unchanged_fork_at_a_model_call_asks_it_again():
    with model_server(script=[*THREE, "Now it is 7."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = go_on(forked(parent, 5))

        assert server.requests[3].body == server.requests[2].body
    assert fork.output == "Now it is 7."
    assert parent.output == "It is 6."


def test_another_prompt_counts_from_the_fork_on_and_copies_keep_their_own():
    prompt = PromptSpec(
        messages=(
            PromptMessage(role="system", template="Speak like a pirate."),
            PromptMessage(role="user", template="{input}"),
        )
    )
    with model_server(script=[*THREE, "Arr."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = go_on(forked(parent, 5, prompt=prompt))

        assert "pirate" in sent(server)
        assert "pirate" not in sent(server, 2)
    assert fork.output == "Arr."
    assert agreeing(fork) == [True, True, True]
    first = rebuild_prompt(fork.calls.first())
    assert "pirate" not in first.request.messages[0].text
    assert fork.fork_edits == ["prompt"]


def test_a_fork_of_a_fork_keeps_what_each_call_was_sent():
    def prompt(word):
        return PromptSpec(template=f"{word}: {{input}}")

    script = [*THREE, call("add", a=9, b=9), "One.", "Two."]
    with model_server(script=script) as server:
        parent = executed(agent_on(server, "add"))
        one = go_on(forked(parent, 5, prompt=prompt("First")))
        two = go_on(forked(one, 7, prompt=prompt("Second")))

    assert two.output == "Two."
    assert agreeing(two) == [True] * 4
    shown = [rebuild_prompt(c).request.messages[0].text[:6] for c in two.calls.all()]
    assert shown[2:] == ["First:", "Second"]


def test_another_model_answers_with_its_own_parameters():
    with model_server(script=[*THREE, "Hi."]) as server:
        parent = executed(agent_on(server, "add"))
        old = load_spec(parent.spec).model
        model = ModelSettings(
            **{**old.model_dump(), "model": "other", "parameters": {"seed": 7}}
        )
        go_on(forked(parent, 1, model=model))

        assert server.requests[3].body["model"] == "other"
        assert server.requests[3].body["seed"] == 7


def test_a_tool_that_is_taken_away_keeps_its_earlier_results():
    with model_server(script=[*THREE, "Done."]) as server:
        parent = executed(agent_on(server, "add", "echo_back"))
        tools = tuple(t for t in load_spec(parent.spec).tools if t.name != "add")
        fork = go_on(forked(parent, 5, tools=tools))

        assert "There is no tool" not in sent(server)
        assert '"content": "3"' in sent(server)
        assert [t["function"]["name"] for t in server.requests[3].body["tools"]] == [
            "echo_back"
        ]
    assert fork.output == "Done."
    assert agreeing(fork) == [True, True, True]


def test_an_edited_reply_calls_what_it_says():
    edited = (ToolCall(id="x1", name="add", arguments='{"a": 40, "b": 2}'),)
    with model_server(script=[*THREE, "42."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = forked(parent, 3, reply_text="I try other numbers.", reply_calls=edited)
        assert [s.status for s in fork.steps.order_by("index")] == [
            "succeeded",
            "planned",
        ]
        fork = go_on(fork)

        assert "I try other numbers." in sent(server)
        assert '"content": "42"' in sent(server)
    assert fork.output == "42."
    assert [c.is_edited for c in fork.calls.all()] == [False, True, False]
    assert list(check_invariants()) == []


def test_a_fork_and_an_edited_reply_keep_the_reasoning_of_their_calls():
    edited = (ToolCall(id="x1", name="add", arguments='{"a": 40, "b": 2}'),)
    script = [{**one, "reasoning": "So."} for one in THREE[:2]]
    with model_server(script=[*script, "It is 6.", "It is 7.", "42."]) as server:
        parent = executed(agent_on(server, "add"))
        go_on(forked(parent, 5))
        go_on(forked(parent, 3, reply_text="Otherwise.", reply_calls=edited))

        for number in (2, 3, 4):
            replies = server.requests[number].body["messages"][-4::2]
            assert [one["reasoning_content"].strip() for one in replies] == ["So."] * 2


def test_an_edited_reply_may_be_the_answer():
    with model_server(script=THREE) as server:
        parent = executed(agent_on(server, "add"))
        fork = go_on(forked(parent, 3, reply_text="It is 3."))

        assert len(server.requests) == 3
    assert (fork.status, fork.output, fork.model_calls) == ("succeeded", "It is 3.", 0)


def test_an_edited_reply_in_a_text_format_is_read_as_one():
    script = ['Action: add\nAction Input: {"a": 2, "b": 2}', "Final Answer: 4"]
    with model_server(script=[*script, "Final Answer: 10"]) as server:
        parent = executed(agent_on(server, "add", kind="react"))
        text = 'Action: add\nAction Input: {"a": 5, "b": 5}'
        fork = go_on(forked(parent, 1, reply_text=text))

        assert "Observation: 10" in sent(server)
    assert fork.output == "10"


def test_a_tool_is_called_again_where_that_is_asked_for():
    functions.mails.clear()
    script = [call("send_mail", to="ann"), "Sent.", "Sent again."]
    with model_server(script=script) as server:
        parent = executed(agent_on(server, "send_mail"))
        fork = go_on(forked(parent, 2, calls_again=True))

    assert functions.mails == ["ann", "ann"]
    assert fork.output == "Sent again."
    assert fork.steps.get().attempts == 1
    assert list(check_invariants()) == []


def test_a_call_that_asks_asks_again_in_the_fork():
    with model_server(script=[call("add", a=1, b=1), "2."]) as server:
        agent = agent_on(server, "add")
        parent = executed(agent)
        tools = tuple(
            tool.model_copy(update={"asks": True})
            for tool in load_spec(parent.spec).tools
        )
        fork = go_on(forked(parent, 2, calls_again=True, tools=tools))

    assert fork.status == "awaiting_approval"
    assert list(check_invariants()) == []


def test_a_fork_cannot_allow_what_always_asks():
    with model_server(script=["Hello."]) as server:
        agent = agent_on(server, "send_mail")
        agent.uses.update(policy="ask")
        parent = executed(agent)
        Tool.objects.filter(name="send_mail").update(approval="always")
        tools = tuple(
            tool.model_copy(update={"asks": False})
            for tool in load_spec(parent.spec).tools
        )
        with pytest.raises(SpecRefused) as refused:
            forked(parent, 1, tools=tools)

    assert [error.field for error in refused.value.errors] == ["tools"]
    assert Run.objects.count() == 1


def test_other_calls_of_the_same_reply_keep_their_results():
    reply = calls(call("add", id="a", a=1, b=1), call("add", id="b", a=2, b=2))
    with model_server(script=[reply, "Done.", "Redone."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = go_on(forked(parent, 2, observation="two"))

        assert '"content": "two"' in sent(server)
        assert '"content": "4"' in sent(server)
    assert fork.output == "Redone."
    assert [s.is_edited for s in fork.steps.order_by("index")] == [True, False]


def test_a_run_that_failed_goes_on_after_its_last_step_with_another_model():
    script = [call("add", a=1, b=2), {"fault": "401"}, "It is 3."]
    with model_server(script=script, faults=FAULTS) as server:
        parent = executed(agent_on(server, "add"))
        assert parent.status == "failed"
        model = load_spec(parent.spec).model.model_copy(update={"model": "other"})
        fork = go_on(forked(parent, get_end_row(parent), model=model))

    assert (fork.status, fork.output) == ("succeeded", "It is 3.")
    assert fork.model_calls == 1
    assert agreeing(fork) == [True, True]


def test_a_stopped_run_goes_on_with_other_limits_and_full_budgets():
    with model_server(script=THREE) as server:
        budget = {"tokens": 1}
        agent = agent_on(server, "add", executor={"budget": budget})
        parent = executed(agent)
        assert parent.stop_reason == "tokens"
        fork = go_on(forked(parent, get_end_row(parent)))

    assert fork.stop_reason == "tokens"
    assert fork.model_calls == 1
    assert fork.next_index == 2


def test_a_fork_after_a_resume_keeps_its_limits_and_prompts():
    with model_server(script=[*THREE, "Again."]) as server:
        agent = agent_on(server, "add", executor={"max_iterations": 1})
        parent = executed(agent)
        resume_run(parent, by=agent.owner, limits={"max_iterations": 9})
        parent = go_on(parent)
        assert parent.status == "succeeded"
        fork = go_on(forked(parent, 5))

    assert fork.output == "Again."
    assert load_spec(fork.spec).executor.max_iterations == 9
    assert agreeing(fork) == [True, True, True]


def test_a_fork_of_a_resumed_run_keeps_its_resumes():
    limits = {"max_iterations": 1, "early_stopping_method": "generate"}
    with model_server(script=[THREE[0], "3?", *THREE[1:], "Again."]) as server:
        agent = agent_on(server, "add", executor=limits)
        parent = executed(agent)
        assert parent.status == "limit_reached"
        resume_run(parent, by=agent.owner, limits={"max_iterations": 9})
        parent = go_on(parent)
        fork = go_on(forked(parent, 6))

    resumes = [
        list(run.resumes.values_list("at_index", "at_number", "by"))
        for run in (parent, fork)
    ]
    assert resumes == [[(1, 2, agent.owner.pk)]] * 2
    assert (fork.status, fork.output) == ("succeeded", "Again.")
    assert agreeing(fork) == [True] * 4


def test_a_fork_of_a_turn_knows_the_same_earlier_turns():
    with model_server(script=["Hi Ann.", "You are Ann.", "Ann."]) as server:
        agent = agent_on(server, memory=True)
        first = go_on(start_run(agent, by=agent.owner, inputs={"input": "I am Ann."}))
        second = start_run(
            agent,
            by=agent.owner,
            inputs={"input": "Who am I?"},
            conversation=first.conversation,
        )
        second = go_on(second)
        fork = go_on(forked(second, 1))

        assert "I am Ann." in sent(server)
    assert fork.turn_ids == second.turn_ids == [first.pk]
    assert fork.conversation.branch_of == second.conversation
    assert agreeing(fork) == [True]


def test_turns_are_seen_as_the_parent_saw_them():
    run = make_run(status="failed", started_at=timezone.now() - timedelta(hours=1))
    fork = forked(run, get_end_row(run))

    assert fork.turns_seen_at == run.started_at


def test_a_deleted_parent_leaves_the_fork_as_it_is():
    with model_server(script=[*THREE, "Seven."]) as server:
        parent = executed(agent_on(server, "add"))
        fork = forked(parent, 5)
        parent.delete()
        fork = go_on(Run.objects.get(pk=fork.pk))

    assert (fork.output, fork.forked_from) == ("Seven.", None)
    assert agreeing(fork) == [True, True, True]


def test_a_step_of_a_child_run_is_copied_without_the_child():
    run = make_run(status="succeeded")
    step = make_step(run, elapsed=0.1)
    make_run(run.owner, parent_step=step, source="parent", status="succeeded")
    make_call(run, at_index=1)
    fork = fork_run(load_fork_point(run, 3), by=run.agent.owner, edits=ForkEdits())

    assert fork.steps.get().observation == "4"
    assert not Run.objects.filter(parent_step__run=fork).exists()


def test_refuses_a_row_that_is_not_there():
    run = make_run(status="succeeded")
    make_step(run)
    for row in (0, 3, 99):
        with pytest.raises(CannotFork):
            load_fork_point(run, row)


@pytest.mark.parametrize(
    ("edits", "error"),
    [
        pytest.param({"observation": "x"}, CannotFork, id="no step here"),
        pytest.param({"calls_again": True}, CannotFork, id="no call here"),
        pytest.param(
            {"prompt": PromptSpec(template="{city}")}, SpecRefused, id="unknown value"
        ),
        pytest.param({"limits": {"max_iterations": 0}}, CannotFork, id="used up"),
        pytest.param({"limits": {"max_iterations": -1}}, SpecRefused, id="below zero"),
        pytest.param({"limits": {"max_iterations": "x"}}, SpecRefused, id="no number"),
    ],
)
def test_refuses_what_does_not_fit(edits, error):
    run = make_run(status="succeeded")
    make_call(run)

    with pytest.raises(error):
        forked(run, 1, **edits)
    assert Run.objects.count() == 1


def test_refuses_a_stranger_and_one_who_may_only_use_the_agent():
    ann, bob = make_user(), make_user()
    agent = make_agent(ann, visibility="everyone")
    run = make_run(bob, agent=agent, status="succeeded")
    make_call(run)
    point = load_fork_point(run, 1)

    with pytest.raises(NotAllowed):
        fork_run(point, by=bob, edits=ForkEdits(reply_text="rm -rf"))
    assert fork_run(point, by=bob, edits=ForkEdits()).owner == bob
    agent.visibility = "private"
    agent.save()
    with pytest.raises(NotAllowed):
        fork_run(point, by=bob, edits=ForkEdits())


def test_refuses_an_archived_agent():
    run = make_run(status="succeeded")
    make_call(run)
    run.agent.archived_at = timezone.now()

    with pytest.raises(NotAllowed):
        forked(run, 1)


def test_an_approval_in_the_parent_is_not_asked_again():
    with model_server(script=[call("send_mail", to="a"), "Sent.", "Ok."]) as server:
        agent = agent_on(server, "send_mail")
        ask_before(agent, "send_mail")
        parent = executed(agent)
        decision = parent.steps.get().decisions.get()
        approve_step(decision, by=agent.owner)
        parent = go_on(parent)
        fork = go_on(forked(parent, 3))

    assert fork.output == "Ok."


def test_other_inputs_count_from_the_fork_on_and_copies_keep_their_own():
    script = [*THREE, call("add", a=9, b=9), "One.", "Two."]
    with model_server(script=script) as server:
        parent = executed(agent_on(server, "add"), "First?")
        one = go_on(forked(parent, 5, inputs={"input": "Second?"}))
        two = go_on(forked(one, 7, inputs={"input": "Third?"}))

        assert "Second?" in sent(server, 3)
        assert "Third?" in sent(server)
    assert (two.output, two.title, two.inputs) == (
        "Two.",
        "Third?",
        {"input": "Third?"},
    )
    assert one.fork_edits == ["inputs"]
    parent.delete()
    shown = [rebuild_prompt(c).request.messages[-1].text for c in two.calls.all()[:1]]
    assert shown == ["First?"]
    assert agreeing(two) == [True] * 4
    assert list(check_invariants()) == []


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        pytest.param({"input": " "}, "Enter a message", id="no question"),
        pytest.param(
            {"city": "Rome"}, 'does not have the input "city"', id="no such variable"
        ),
        pytest.param({"input": "x" * 1_000_001}, "at most", id="too long"),
    ],
)
def test_inputs_that_no_run_would_take_are_refused(inputs, says):
    run = make_run(status="succeeded")
    make_call(run)

    with pytest.raises(InputsRefused, match=says):
        forked(run, 1, inputs=inputs)
    assert Run.objects.count() == 1


def test_a_fork_of_a_turn_goes_on_in_a_branch_of_the_conversation():
    with model_server(script=["One.", "Two.", "Other.", "Three."]) as server:
        agent = agent_on(server, memory=True)
        first = executed(agent, "A?")
        conversation = first.conversation
        second = go_on(
            start_run(
                agent, by=agent.owner, inputs={"input": "B?"}, conversation=conversation
            )
        )
        fork = go_on(forked(second, 1))
        branch = fork.conversation
        third = start_run(
            agent, by=agent.owner, inputs={"input": "C?"}, conversation=branch
        )
        go_on(third)

        assert "Other." in sent(server)
        assert "Two." not in sent(server)
    assert (branch.branch_of, branch.branch_at) == (conversation, second.pk)
    assert list(get_conversation_turns(branch).order_by("pk")) == [first, fork, third]
    assert list(get_conversation_turns(conversation).order_by("pk")) == [first, second]
    again = forked(fork, 1).conversation
    assert (again.branch_of, again.branch_at) == (conversation, second.pk)


def test_a_fork_of_somebody_elses_turn_stands_alone():
    agent = make_agent(memory=True)
    run = make_run(agent=agent, status="succeeded")
    make_call(run)
    run.conversation = Conversation.objects.create(owner=run.owner, agent=agent)
    run.save()
    admin = make_user(is_superuser=True)

    alone = fork_run(load_fork_point(run, 1), by=admin, edits=ForkEdits())

    assert alone.conversation is None
    assert Conversation.objects.count() == 1


def test_a_fork_counts_as_a_run_of_its_person(settings):
    with model_server(script=["It is 3."]) as server:
        parent = executed(agent_on(server, "add"))
    make_run(parent.owner, agent=parent.agent, status="running")
    settings.USER_RUNS = 1

    with pytest.raises(TooManyRuns):
        forked(parent, 1)
