"""Replaying real inputs: what the draft would do differently, with nothing sent."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from runs.models import Agent, AgentStep, InputReplay, Run
from runs.services.agents.publish import publish_agent
from runs.services.gates.replay import (
    ReplayReport,
    load_input_replay,
    start_input_replay,
)
from tests.make import fit, make_agent, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(make_user("ann"))
    publish_agent(agent, by=agent.owner)
    return agent


def make_real_run(agent: Agent, *tools: str, **fields) -> Run:
    """Make a real run of the newest version that has called these tools."""
    version = agent.versions.first()
    run = make_run(agent=agent, version=version, status="succeeded", **fields)
    for tool in tools:
        make_step(run, tool=tool, effect="side_effect")
    return run


def replay_with(
    agent: Agent, *steps: tuple[str, str], status: str = "succeeded"
) -> ReplayReport:
    """Replay the inputs; each run of the draft takes these steps and ends."""
    replay = start_input_replay(agent, by=agent.owner, count=50)
    for one in replay.inputs.select_related("run"):
        for tool, answered_by in steps:
            make_step(one.run, tool=tool, effect="side_effect", answered_by=answered_by)
        Run.objects.filter(pk=one.run.pk).update(
            status=status, **fit(status, timezone.now())
        )
    report = load_input_replay(agent, replay.digest, by=agent.owner)
    assert report is not None
    return report


def test_the_draft_runs_the_newest_real_inputs_from_their_recordings(agent):
    runs = [make_real_run(agent) for _ in range(3)]

    replay = start_input_replay(agent, by=agent.owner, count=2)

    started = [one.run for one in replay.inputs.select_related("run")]
    assert [one.recorded_id for one in replay.inputs.all()] == [
        runs[2].pk,
        runs[1].pk,
    ]
    assert {(run.tool_mode, run.queue, run.version) for run in started} == {
        ("replay_by_tool", "bulk", None)
    }
    assert all(run.is_test for run in started)


def test_tests_drafts_and_runs_of_others_are_no_real_inputs(agent):
    make_real_run(agent, is_test=True)
    make_run(agent=agent, status="succeeded")
    make_real_run(agent, owner=make_user("bob"))
    make_real_run(agent).delete()

    assert start_input_replay(agent, by=agent.owner, count=5) is None
    assert not InputReplay.objects.exists()


def test_inputs_that_the_draft_does_not_have_are_left_out(agent):
    make_real_run(agent, inputs={"city": "Oslo"})
    wanted = make_real_run(agent)

    replay = start_input_replay(agent, by=agent.owner, count=5)

    assert [one.recorded for one in replay.inputs.all()] == [wanted]


@pytest.mark.parametrize(
    ("steps", "change", "tools"),
    [
        ([("pay", "recording")], "same", ()),
        ([("pay", "other_arguments")], "arguments", ("pay",)),
        ([("pay", "recording"), ("book", "no_recording")], "new_call", ("book",)),
        ([], "fewer", ("pay",)),
        ([("pay", "no_recording")], "no_recording", ("pay",)),
    ],
)
def test_the_gravest_difference_is_named(agent, steps, change, tools):
    make_real_run(agent, "pay")

    [found] = replay_with(agent, *steps).runs

    assert (found.change, found.tools) == (change, tools)


def test_a_call_that_the_draft_refuses_is_not_fewer_calls(agent):
    for _ in range(2):
        make_real_run(agent, "pay", "pay")
    replay = start_input_replay(agent, by=agent.owner, count=2)
    for one in replay.inputs.select_related("run"):
        make_step(one.run, tool="pay", effect="side_effect", answered_by="recording")
        make_step(one.run, tool="pay", effect="", status="failed")
        make_step(one.run, tool="_Exception", effect="", status="failed")
        Run.objects.filter(pk=one.run.pk).update(
            status="succeeded", **fit("succeeded", timezone.now())
        )

    report = load_input_replay(agent, replay.digest, by=agent.owner)

    assert {(one.change, one.tools) for one in report.runs} == {("refused", ("pay",))}
    [calls] = report.calls
    assert (calls.recorded, calls.draft, calls.refused) == (4, 2, 2)


def test_a_run_that_fails_only_now_is_named(agent):
    make_real_run(agent, "pay")

    [found] = replay_with(agent, status="failed").runs

    assert found.change == "failed"


def test_calls_are_counted_by_tool_on_both_sides(agent):
    make_real_run(agent, "pay", "pay")
    make_real_run(agent)

    report = replay_with(agent, ("pay", "recording"), ("book", "no_recording"))

    assert [(one.tool, one.recorded, one.draft) for one in report.calls] == [
        ("book", 0, 2),
        ("pay", 2, 2),
    ]
    assert report.counts == {"new_call": 2}
    assert AgentStep.objects.count() == 6


def test_another_draft_has_no_replay(agent):
    make_real_run(agent)
    replay_with(agent)

    assert load_input_replay(agent, "0" * 64, by=agent.owner) is None


def test_a_replay_has_its_time_and_cost(agent):
    for _ in range(2):
        make_real_run(agent)
    replay = start_input_replay(agent, by=agent.owner, count=2)
    running = load_input_replay(agent, replay.digest, by=agent.owner)
    assert running.seconds is None

    ended = replay.created_at + timedelta(seconds=5)
    for one in replay.inputs.all():
        Run.objects.filter(pk=one.run_id).update(
            status="succeeded", cost="0.25", **fit("succeeded", ended)
        )

    report = load_input_replay(agent, replay.digest, by=agent.owner)
    assert (report.seconds, report.cost) == (5.0, Decimal("0.5"))
