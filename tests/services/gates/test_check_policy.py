"""The draft's rules against stored runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.engine.types import ExecutorOptions
from runs.models import Agent, AgentTool, Resume, Run
from runs.services.gates import check_policy as module
from runs.services.gates.check_policy import PolicyCheck, check_policy
from runs.services.spec.freeze import freeze_agent
from tests.make import (
    make_agent,
    make_call,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(make_user())
    AgentTool.objects.create(agent=agent, tool=make_tool(name="pay"), policy="allow")
    return agent


def make_past_run(agent: Agent, *tools: str, **fields) -> Run:
    """Make a run with the rules that the agent has now, and an answer at its end."""
    spec = make_spec(freeze_agent(agent))
    run = make_run(agent=agent, **{"status": "succeeded", "spec": spec, **fields})
    for tool in tools:
        make_step(run, call=make_call(run), tool=tool, effect="side_effect")
    if run.status == "succeeded":
        make_call(run)
    return run


def check(agent: Agent, **more) -> PolicyCheck:
    return check_policy(agent, by=agent.owner, **more)


def changes_of(found: PolicyCheck) -> list[tuple]:
    return [(one.run.pk, one.change, one.step, one.tools) for one in found.runs]


def test_an_unchanged_draft_decides_the_same(agent):
    make_past_run(agent, "pay", "pay")

    found = check(agent)

    assert (found.runs, found.checked, found.total) == ([], 1, 1)
    assert found.counts["same"] == 1


def test_says_which_runs_would_have_awaited_approval(agent):
    make_past_run(agent)
    run = make_past_run(agent, "pay", "pay")
    AgentTool.objects.update(policy="ask")

    found = check(agent)

    assert changes_of(found) == [(run.pk, "asks", 0, ("pay",))]
    assert found.tools == [("pay", 2, 0, 2, 0)]


def test_says_which_runs_would_no_longer_have_asked(agent):
    AgentTool.objects.update(policy="ask")
    run = make_past_run(agent, "pay")
    AgentTool.objects.update(policy="allow")

    assert changes_of(check(agent)) == [(run.pk, "asks_no_more", 0, ("pay",))]


def test_says_which_calls_a_removed_tool_would_not_have_made(agent):
    run = make_past_run(agent, "pay")
    AgentTool.objects.update(policy="deny")

    assert changes_of(check(agent)) == [(run.pk, "refused", 0, ("pay",))]


def set_limits(agent: Agent, **options) -> None:
    agent.executor = ExecutorOptions(**options).model_dump(mode="json")
    agent.save()


def test_says_where_a_lower_limit_would_have_stopped_a_run(agent):
    run = make_past_run(agent, "pay", "pay", "pay")
    for step in run.steps.all():
        step.tool_input = {"n": step.index}
        step.save()
    set_limits(agent, max_iterations=2)

    found = check(agent)

    assert changes_of(found) == [(run.pk, "stops", 2, ())]
    assert found.runs[0].stop_reason == "iterations"


def test_says_which_stopped_runs_would_have_gone_on(agent):
    set_limits(agent, max_iterations=1)
    fields = {"status": "limit_reached", "stop_reason": "iterations"}
    run = make_past_run(agent, "pay", **fields)
    set_limits(agent, max_iterations=9)

    [one] = check(agent).runs

    assert (one.run.pk, one.change, one.stop_reason) == (
        run.pk,
        "goes_on",
        "iterations",
    )


def test_a_limit_that_stops_at_the_same_step_changes_nothing(agent):
    set_limits(agent, max_iterations=1)
    make_past_run(agent, "pay", status="limit_reached", stop_reason="iterations")
    set_limits(agent, max_iterations=9, budget={"tokens": 120})

    assert check(agent).runs == []


def test_leaves_out_tests_forks_resumed_old_and_unfinished_runs(agent):
    other = make_past_run(agent, "pay")
    make_past_run(agent, "pay", is_test=True)
    make_past_run(agent, "pay", forked_from=other)
    resumed = make_past_run(agent, "pay")
    Resume.objects.create(run=resumed, at_index=1, at_number=1)
    old = make_past_run(agent, "pay")
    Run.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    make_run(agent=agent, status="running")

    assert check(agent).checked == 1
    assert check(agent, days=60).checked == 2


def test_leaves_out_runs_that_the_user_may_not_see(agent):
    make_past_run(agent, "pay")

    assert check_policy(agent, by=make_user()).checked == 0


def test_checks_the_newest_runs_and_says_how_many_there_are(agent, monkeypatch):
    make_past_run(agent, "pay")
    newest = [make_past_run(agent, "pay") for _ in range(2)]
    AgentTool.objects.update(policy="ask")
    monkeypatch.setattr(module, "MAX_CHECKED", 2)

    found = check(agent)

    assert (found.checked, found.total) == (2, 3)
    assert [one.run.pk for one in found.runs] == [run.pk for run in newest[::-1]]


def test_asks_the_database_a_fixed_number_of_times(
    agent, django_assert_max_num_queries
):
    for _ in range(20):
        make_past_run(agent, "pay", "pay")

    with django_assert_max_num_queries(12):
        check(agent)
