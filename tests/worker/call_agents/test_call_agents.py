"""Agents that call other agents: a child run for each call, and a parent that waits."""

import pytest

from runs.models import AgentStep, AgentTool, Run
from runs.services.agents.publish import publish_agent
from runs.services.approvals.answer import approve_step, reject_step
from runs.services.errors import CannotResume
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.runs.cancel import cancel_run
from runs.services.runs.resume import resume_run
from runs.store.specs import load_spec
from runs.store.transitions import transition
from runs.worker.sweep import sweep
from tests.fakes.model_server import model_server
from tests.make import make_prompt, make_user
from tests.makers.experiments import make_examples, make_revision, turn
from tests.worker.family import caller_of, children_of, finished, sound
from tests.worker.run_parts import (
    agent_on,
    ask_before,
    call,
    calls,
    executed,
    go_on,
    started,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_called_agent_answers_in_a_run_of_its_own():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="Oslo"), "Go outside."]) as above,
    ):
        scout = agent_on(below, slug="scout", description="Looks at the weather.")
        run = executed(caller_of(above, scout))
        assert (run.status, run.worker) == ("waiting", None)

        (child,) = children_of(run)
        assert (child.source, child.status, child.owner) == (
            "parent",
            "queued",
            run.owner,
        )
        assert child.inputs == {"input": "Oslo"}
        go_on(child)
        run.refresh_from_db()
        assert run.status == "queued"
        finished(run)

    assert run.output == "Go outside."
    step = run.steps.get()
    assert (step.observation, step.status, step.elapsed) == ("Sunny.", "succeeded", 0.0)
    tool = above.requests[0].body["tools"][0]["function"]
    assert (tool["name"], tool["description"]) == ("scout", "Looks at the weather.")
    assert tool["parameters"]["required"] == ["input"]


def test_children_of_one_reply_run_side_by_side_and_wake_the_parent_once():
    reply = calls(call("scout", id="a", input="Oslo"), call("scout", id="b", input="X"))
    with (
        model_server(script=["One.", "Two."]) as below,
        model_server(script=[reply, "Both."]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout")))
        first, second = children_of(run)
        assert (first.status, second.status) == ("queued", "queued")

        go_on(second)
        run.refresh_from_db()
        assert run.status == "waiting"
        go_on(first)
        run.refresh_from_db()
        assert run.status == "queued"
        finished(run)

    assert run.output == "Both."
    assert [s.observation for s in run.steps.all()] == ["Two.", "One."]


def test_a_call_takes_what_the_agents_prompt_asks_for():
    with (
        model_server(script=["Fine."]) as below,
        model_server(
            script=[call("scout", input="walk", city="Oslo"), "Done."]
        ) as above,
    ):
        owner = make_user()
        prompt = make_prompt(
            owner, messages=[{"role": "user", "template": "{input} in {city}"}]
        )
        scout = agent_on(below, owner=owner, slug="scout", prompt=prompt)
        run = finished(started(caller_of(above, scout)))

    assert children_of(run)[0].inputs == {"input": "walk", "city": "Oslo"}
    tool = above.requests[0].body["tools"][0]["function"]
    assert tool["parameters"]["required"] == ["input", "city"]


def test_tools_of_the_same_reply_run_while_the_child_waits_for_a_worker():
    reply = calls(call("scout", input="Oslo"), call("add", a=1, b=2))
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[reply, "Done."]) as above,
    ):
        scout = agent_on(below, slug="scout")
        run = executed(caller_of(above, scout, names=("add",)))

        assert run.status == "waiting"
        assert [s.status for s in run.steps.all()] == ["started", "succeeded"]
        finished(run)

    assert [s.observation for s in run.steps.all()] == ["Sunny.", "3"]


def test_the_newest_published_version_answers():
    with (
        model_server(script=["Old."]) as old,
        model_server(script=["New."]) as new,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        scout = agent_on(old, slug="scout")
        version = publish_agent(scout, by=scout.owner)
        scout.provider = agent_on(new, owner=scout.owner).provider
        scout.save()
        run = finished(started(caller_of(above, scout)))

    (child,) = children_of(run)
    assert (child.version, child.output) == (version, "Old.")


def test_in_an_experiment_agents_run_what_they_ran_when_it_was_created():
    with (
        model_server(script=["Old."]) as old,
        model_server(script=["New."]) as new,
        model_server(script=[call("scout", input="x"), "Seen."]) as middle,
        model_server(script=[call("guide", input="x"), "Done."]) as above,
    ):
        scout = agent_on(old, slug="scout")
        ann = scout.owner
        guide = caller_of(middle, scout, slug="guide")
        boss = caller_of(above, guide)
        for agent in (scout, boss):
            publish_agent(agent, by=ann)
        choice = CandidateChoice(boss, boss.versions.get())
        experiment = create_experiment(
            *(make_examples(ann, 1), [choice], [make_revision(ann)]),
            by=ann,
            plan=ExperimentPlan(),
        )
        scout.provider = agent_on(new, owner=ann).provider
        scout.save()
        guide.parameters = {"temperature": 0.5}
        guide.save()  # unpublished, so its draft is what runs
        for agent in (scout, guide):
            publish_agent(agent, by=ann)
        turn(experiment)
        run = finished(experiment.cells.get().run)

    (child,) = children_of(run)
    (grandchild,) = children_of(child)
    assert (run.output, child.output, grandchild.output) == ("Done.", "Seen.", "Old.")
    assert load_spec(child.spec).model.parameters == {}
    assert (child.version, grandchild.version.number) == (None, 1)


ENDS = [
    pytest.param(["", "", ""], "failed: The reply is empty", id="failed"),
    pytest.param(
        [call("add", a=1, b=1)] * 2, "its limit of rounds", id="limit_reached"
    ),
]


@pytest.mark.parametrize(("script", "message"), ENDS)
def test_the_model_is_given_why_there_is_no_answer(script, message):
    with (
        model_server(script=script) as below,
        model_server(script=[call("scout", input="x"), "So be it."]) as above,
    ):
        scout = agent_on(
            below,
            "add",
            slug="scout",
            name="Scout",
            executor={"max_iterations": 2, "handle_parsing_errors": False},
        )
        run = finished(started(caller_of(above, scout)))

    step = run.steps.get()
    assert (run.status, step.status) == ("succeeded", "failed")
    assert step.observation.startswith("The agent 'Scout' ")
    assert message in step.observation


def test_a_child_that_a_person_stops_answers_so_and_the_parent_goes_on():
    with (
        model_server() as below,
        model_server(script=[call("scout", input="x"), "Without it."]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout", name="Scout")))
        cancel_run(children_of(run)[0], by=run.owner)
        finished(run)

    assert run.output == "Without it."
    said = run.steps.get().observation
    assert said == (
        f"The agent 'Scout' was canceled by {run.owner.username} before it had a "
        "result."
    )


def test_stop_goes_down_to_children_and_grandchildren():
    with (
        model_server() as lowest,
        model_server(script=[call("low", input="x")]) as middle,
        model_server(script=[call("mid", input="x")]) as above,
    ):
        low = agent_on(lowest, slug="low")
        mid = caller_of(middle, low, slug="mid")
        run = executed(caller_of(above, mid))
        (child,) = children_of(run)
        go_on(child)
        (grandchild,) = children_of(child)
        cancel_run(run, by=run.owner)

        for one in (run, child, grandchild):
            one.refresh_from_db()
            assert (one.status, one.canceled_by) == ("canceled", run.owner)
    assert AgentStep.objects.filter(status="canceled").count() == 2
    sound()


def test_what_children_use_counts_to_the_parent_and_its_budget():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Never asked."]) as above,
    ):
        owner = make_user()
        words = "{input} " + "x " * 2000
        long = make_prompt(owner, messages=[{"role": "user", "template": words}])
        scout = agent_on(below, owner=owner, slug="scout", prompt=long)
        caller = caller_of(above, scout, executor={"budget": {"tokens": 600}})
        run = finished(started(caller))

    (child,) = children_of(run)
    own = run.calls.get()
    assert run.input_tokens == own.input_tokens + child.input_tokens > 0
    assert run.output_tokens == own.output_tokens + child.output_tokens
    assert run.model_calls == 2
    assert own.input_tokens + own.output_tokens < 600 < run.steps.get().usage["tokens"]
    assert (run.status, run.stop_reason) == ("limit_reached", "tokens")


def test_waiting_for_a_child_is_no_working_time():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        scout = agent_on(below, slug="scout")
        run = executed(caller_of(above, scout, executor={"max_execution_time": 20}))
        Run.objects.filter(parent_step__run=run).update(
            created_at="2020-01-01T00:00:00Z"
        )
        finished(run)

    assert run.status == "succeeded"
    assert run.steps.get().duration > 1_000_000


def test_an_approval_that_a_child_needs_is_waited_for_by_both():
    with (
        model_server(script=[call("send_mail", to="ann"), "Sent."]) as below,
        model_server(script=[call("post", input="x"), "Done."]) as above,
    ):
        post = agent_on(below, "send_mail", slug="post")
        ask_before(post, "send_mail")
        run = executed(caller_of(above, post))
        (child,) = children_of(run)
        go_on(child)
        sweep(free=5)
        run.refresh_from_db()
        assert (run.status, child.status) == ("waiting", "awaiting_approval")

        approve_step(child.steps.get().decisions.get(), by=run.owner)
        finished(run)

    assert run.output == "Done."


def test_a_call_of_an_agent_can_need_an_approval_itself():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        caller = caller_of(above, agent_on(below, slug="scout"))
        AgentTool.objects.filter(agent=caller).update(policy="ask")
        run = executed(caller)
        assert (run.status, children_of(run)) == ("awaiting_approval", [])

        question = run.steps.get().decisions.get()
        assert question.shown["target"] == "The agent scout, in a run of its own"
        approve_step(question, by=run.owner, edited_input={"input": "Bergen"})
        finished(run)

    assert run.output == "Done."
    assert children_of(run)[0].inputs == {"input": "Bergen"}
    assert run.steps.get().observation.endswith("Sunny.")


def test_a_child_may_end_while_another_call_is_still_asked_about():
    reply = calls(call("scout", input="Oslo"), call("send_mail", to="ann"))
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[reply, "Done."]) as above,
    ):
        caller = caller_of(above, agent_on(below, slug="scout"), names=("send_mail",))
        ask_before(caller, "send_mail")
        run = executed(caller)
        assert run.status == "awaiting_approval"
        go_on(children_of(run)[0])
        sound()
        reject_step(run.steps.get(tool="send_mail").decisions.get(), by=run.owner)
        finished(run)

    assert run.output == "Done."
    assert run.steps.get(tool="scout").observation == "Sunny."


def test_a_denied_agent_is_not_shown_to_the_model():
    with (
        model_server() as below,
        model_server(script=["Alone."]) as above,
    ):
        caller = caller_of(above, agent_on(below, slug="scout"))
        AgentTool.objects.filter(agent=caller).update(policy="deny")
        executed(caller)

    assert "tools" not in above.requests[0].body


def refused(change, **settings):
    """Run a caller after `change` was done to the agent it calls."""
    with (
        model_server(script=["Sunny."] * 9) as below,
        model_server(script=[call("scout", input="x"), "Alone."]) as above,
    ):
        scout = agent_on(below, slug="scout", name="Scout", visibility="everyone")
        caller = caller_of(above, scout, owner=make_user())
        run = started(caller)
        change(scout)
        finished(run)
    assert children_of(run) == []
    assert run.output == "Alone."
    return run.steps.get().observation


def archive(agent):
    agent.archived_at = "2026-01-01T00:00:00Z"
    agent.save()


def withdraw(agent):
    agent.visibility = "private"
    agent.save()


def lock_out(agent):
    agent.owner.is_active = False
    agent.owner.save()


CHANGES = [
    pytest.param(archive, "is archived", id="archived"),
    pytest.param(withdraw, "can no longer use the agent 'Scout'", id="withdrawn"),
    pytest.param(lock_out, "is disabled", id="locked-out"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_rights_are_looked_at_when_the_agent_is_called(change, message):
    assert message in refused(change)


def test_who_runs_the_caller_need_not_see_the_called_agent():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        scout = agent_on(below, slug="scout")
        caller = caller_of(above, scout, visibility="everyone")
        stranger = make_user()
        run = started(caller)
        Run.objects.filter(pk=run.pk).update(owner=stranger)
        finished(run)

    assert (run.output, children_of(run)[0].owner) == ("Done.", stranger)


def test_agents_call_one_another_only_so_deep(settings):
    settings.AGENT_DEPTH = 1
    with (
        model_server() as lowest,
        model_server(script=[call("low", input="x"), "Alone."]) as middle,
        model_server(script=[call("mid", input="x"), "Done."]) as above,
    ):
        mid = caller_of(middle, agent_on(lowest, slug="low"), slug="mid")
        run = finished(started(caller_of(above, mid)))

    (child,) = children_of(run)
    assert (child.output, children_of(child)) == ("Alone.", [])
    assert "1 level deep" in child.steps.get().observation


def test_a_circle_that_came_into_being_ends_at_the_depth(settings):
    settings.AGENT_DEPTH = 2
    script = [call("me", input="x")] * 3 + ["End.", "Up.", "Done."]
    with model_server(script=script) as server:
        agent = agent_on(server, slug="me")
        AgentTool.objects.create(agent=agent, sub_agent=agent)
        run = finished(started(agent))

    assert (run.output, Run.objects.count()) == ("Done.", 3)


def test_one_run_calls_agents_only_so_often(settings):
    settings.CHILD_RUNS = 1
    reply = calls(call("scout", id="a", input="x"), call("scout", id="b", input="y"))
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[reply, "Done."]) as above,
    ):
        run = finished(started(caller_of(above, agent_on(below, slug="scout"))))

    assert len(children_of(run)) == 1
    assert "may call other agents 1 times" in run.steps.get(index=1).observation


def test_a_worker_that_died_after_the_reply_leaves_one_child_for_the_next():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout")))
        before = children_of(run)
        died(run)
        go_on(run)
        assert (children_of(run), run.status) == (before, "waiting")

        Run.objects.filter(parent_step__run=run).delete()  # as if never committed
        died(run)
        finished(run)

    assert (len(children_of(run)), run.output) == (1, "Done.")
    assert run.steps.get().attempts == 1


def died(run):
    """Leave `run` as a worker does that was killed before it had parked the run."""
    Run.objects.filter(pk=run.pk).update(
        status="running", lease_until="2020-01-01T00:00:00Z"
    )


def test_a_parent_that_was_not_woken_is_found_by_the_sweeper():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout")))
        before = run.fence
        sweep(free=5)
        go_on(run)  # a bell that rings by mistake
        assert (run.status, run.fence) == ("waiting", before)

        go_on(children_of(run)[0])
        Run.objects.filter(pk=run.pk).update(status="waiting")
        sweep(free=5)
        finished(run)

    assert run.output == "Done."


def test_an_ended_child_is_not_resumed_behind_its_parents_back():
    with (
        model_server(script=["", "", ""]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        scout = agent_on(below, slug="scout", executor={"handle_parsing_errors": False})
        run = finished(started(caller_of(above, scout)))

    with pytest.raises(CannotResume, match="Run the agent again instead"):
        resume_run(children_of(run)[0], by=run.owner)


def test_a_parent_that_fails_takes_its_children_along():
    reply = calls(call("scout", input="x"), call("send_mail", to="ann"))
    with model_server() as below, model_server(script=[reply]) as above:
        caller = caller_of(above, agent_on(below, slug="scout"), names=("send_mail",))
        ask_before(caller, "send_mail")
        run = executed(caller)
        cancel_run(run)

    assert {child.status for child in children_of(run)} == {"canceled"}
    sound()


def test_the_agents_answer_can_be_the_runs_own():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("weather", input="x")]) as above,
    ):
        caller = caller_of(above, agent_on(below, slug="scout"))
        AgentTool.objects.filter(agent=caller).update(
            overrides={"name": "weather", "return_direct": True}
        )
        run = finished(started(caller))

    assert run.output == "Sunny."


def test_a_change_of_the_child_is_shown_on_the_parents_step():
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[call("scout", input="x"), "Done."]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout")))
        before = run.seq
        go_on(children_of(run)[0])
        run.refresh_from_db()

        assert run.seq > before
        assert run.steps.get().changed_seq > before


def test_a_model_that_is_away_fails_the_child_in_words():
    with (
        model_server(script=[{"fault": "401"}]) as below,
        model_server(script=[call("scout", input="x"), "Without."]) as above,
    ):
        run = finished(started(caller_of(above, agent_on(below, slug="scout"))))

    assert run.output == "Without."
    assert "failed" in run.steps.get().observation


@pytest.mark.parametrize(
    ("kind", "asks", "answers"),
    [
        pytest.param(
            "react",
            "Thought: ask\nAction: scout\nAction Input: Oslo",
            "Thought: done\nFinal Answer: Done.",
            id="react",
        ),
        pytest.param(
            "structured-chat",
            '```json\n{"action": "scout", "action_input": {"input": "Oslo"}}\n```',
            '```json\n{"action": "Final Answer", "action_input": "Done."}\n```',
            id="structured-chat",
        ),
    ],
)
def test_agents_without_function_calling_call_agents_too(kind, asks, answers):
    with (
        model_server(script=["Sunny."]) as below,
        model_server(script=[asks, answers]) as above,
    ):
        scout = agent_on(below, slug="scout")
        run = finished(started(caller_of(above, scout, kind=kind)))

    assert run.output == "Done."
    assert children_of(run)[0].inputs == {"input": "Oslo"}


def test_a_child_that_was_deleted_with_its_caller_ends_quietly():
    with (
        model_server() as below,
        model_server(script=[call("scout", input="x")]) as above,
    ):
        run = executed(caller_of(above, agent_on(below, slug="scout")))
        (child,) = children_of(run)
        Run.objects.filter(pk=run.pk).delete()

    assert not transition(child, to="canceled")
    assert not Run.objects.exists()
