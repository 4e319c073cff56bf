"""The rules that runs must keep: each one is seen to be broken."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.models import DailyRunStats, Decision, IdempotencyKey, Run, Schedule
from runs.models.runs import FINISHED_STATUSES
from runs.services.health import invariants
from runs.services.health.invariants import RULES, check_invariants
from runs.services.runs.resume import resume_run
from tests.make import (
    make_agent,
    make_call,
    make_decision,
    make_delivery,
    make_run,
    make_schedule,
    make_step,
    make_user,
    make_version,
)
from tests.services.retention.rows import make_old_run, prune, set_rules

pytestmark = pytest.mark.django_db


def sound_run(**fields) -> Run:
    """Make a run with two calls, a step each, and no fault."""
    if fields.get("status") == "canceled":
        fields["cancel_requested_at"] = timezone.now()
    run = make_run(cost="0.5", **fields)
    for _ in range(2):
        make_step(run, call=make_call(run, cost="0.25"), elapsed=0.1)
    return run


def broken() -> set[str]:
    return {violation.rule for violation in check_invariants()}


@pytest.mark.parametrize("status", [*FINISHED_STATUSES, "queued", "running"])
def test_a_sound_run_breaks_nothing(status):
    sound_run(status=status)

    assert list(check_invariants()) == []


def test_a_run_that_asks_breaks_nothing():
    run = sound_run(status="awaiting_approval")
    make_decision(make_step(run, status="awaiting_approval"))
    run = sound_run(status="awaiting_decision")
    step = make_step(run, status="unknown", effect="side_effect", attempts=1)
    make_decision(step, question="outcome")

    assert list(check_invariants()) == []


def test_a_run_with_a_child_breaks_nothing():
    parent = sound_run(status="waiting")
    step = make_step(parent, status="started", attempts=1)
    make_run(parent.owner, parent_step=step, source="parent")

    assert list(check_invariants()) == []


def test_a_retry_requested_by_a_person_breaks_nothing():
    run = sound_run(status="succeeded")
    step = make_step(run, elapsed=0.1, effect="side_effect", attempts=2)
    make_decision(step, question="outcome", answer="retry", at=timezone.now())

    assert list(check_invariants()) == []


STEP_FAULTS = [
    ("steps_are_contiguous", {"index": 7}),
    ("answered_steps_have_an_outcome", {"elapsed": None}),
    ("answered_steps_have_an_outcome", {"status": "skipped", "observation": ""}),
    ("answered_steps_have_an_outcome", {"status": "canceled"}),
    ("runs_that_are_over_have_no_open_steps", {"status": "planned"}),
    ("runs_that_are_over_have_no_open_steps", {"status": "started"}),
    ("runs_that_are_over_have_no_open_steps", {"status": "awaiting_approval"}),
    ("started_steps_were_counted", {"status": "started", "attempts": 0}),
    ("side_effects_repeat_only_on_retry", {"effect": "side_effect", "attempts": 2}),
    ("tool_modes_make_no_other_calls", {"answered_by": "held_back", "attempts": 1}),
    ("steps_belong_to_the_call_that_asked", {"round": 9}),
    ("seq_is_the_highest_number", {"changed_seq": 99}),
    ("seq_is_the_highest_number", {"changed_seq": 0}),
]


@pytest.mark.parametrize(
    ("rule", "fault"),
    STEP_FAULTS,
    ids=[f"{r}-{i}" for i, (r, _) in enumerate(STEP_FAULTS)],
)
def test_a_fault_of_a_step_is_found(rule, fault):
    run = sound_run(status="succeeded")
    sound_run(status="succeeded")

    run.steps.filter(index=1).update(**fault)

    assert rule in broken()


CALL_FAULTS = [
    ("calls_are_contiguous", {"number": 7}),
    ("steps_belong_to_the_call_that_asked", {"round": 9}),
    ("steps_belong_to_the_call_that_asked", {"at_index": 9}),
    ("seq_is_the_highest_number", {"changed_seq": 99}),
    ("usage_adds_up", {"input_tokens": 1}),
    ("usage_adds_up", {"output_tokens": 1}),
    ("usage_adds_up", {"cost": "0.3"}),
]


@pytest.mark.parametrize(
    ("rule", "fault"),
    CALL_FAULTS,
    ids=[f"{r}-{i}" for i, (r, _) in enumerate(CALL_FAULTS)],
)
def test_a_fault_of_a_model_call_is_found(rule, fault):
    run = sound_run(status="succeeded")

    run.calls.filter(number=1).update(**fault)

    assert broken() == {rule}


RUN_FAULTS = [
    ("steps_are_contiguous", "running", {"next_index": 3}),
    ("calls_are_contiguous", "running", {"next_number": 1}),
    ("running_runs_were_claimed", "running", {"fence": 0}),
    ("running_runs_were_claimed", "running", {"started_at": None}),
    ("seq_is_the_highest_number", "running", {"seq": 1}),
    ("usage_adds_up", "running", {"model_calls": 3}),
    ("usage_adds_up", "running", {"cost": "0.1"}),
    ("awaiting_runs_have_an_open_decision", "awaiting_approval", {}),
    ("awaiting_runs_have_an_open_decision", "awaiting_decision", {}),
    ("waiting_runs_wait_for_something", "waiting", {}),
    ("ended_runs_have_a_reason", "failed", {"error_code": ""}),
    ("ended_runs_have_a_reason", "failed", {"error_message": ""}),
    ("ended_runs_have_a_reason", "succeeded", {"error_code": "x"}),
    ("ended_runs_have_a_reason", "canceled", {"cancel_requested_at": None}),
    (
        "ends_come_after_starts",
        "succeeded",
        {"started_at": timezone.now() + timedelta(days=1)},
    ),
]


@pytest.mark.parametrize(("rule", "status", "fault"), RUN_FAULTS)
def test_a_fault_of_a_run_is_found(rule, status, fault):
    run = sound_run(status=status)

    if fault:
        Run.objects.filter(pk=run.pk).update(**fault)

    assert broken() == {rule}


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        pytest.param("queued", {"lease_until": timezone.now()}, id="lease"),
        pytest.param("running", {"lease_until": None}, id="no-lease"),
        pytest.param("limit_reached", {"stop_reason": ""}, id="reason"),
        pytest.param("succeeded", {"ended_at": None}, id="end"),
        pytest.param("queued", {"ended_at": timezone.now()}, id="no-end"),
    ],
)
def test_the_database_itself_refuses_some_faults(status, fault):
    run = make_run(status=status)

    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**fault)


def test_an_attempt_from_the_future_is_found():
    run = sound_run(status="running")
    run.attempts.create(
        number=2,
        attempt=1,
        code="timeout",
        message="Late.",
        started_at=timezone.now(),
        elapsed=1,
        created_seq=99,
    )

    assert broken() == {"seq_is_the_highest_number"}


def test_a_question_about_a_run_that_does_not_wait_is_found():
    run = sound_run(status="queued")
    make_decision(run.steps.first())

    assert broken() == {"open_decisions_belong_to_awaiting_runs"}


@pytest.mark.parametrize(
    "fault", [{"answer": "approved"}, {"answer": "", "at": timezone.now()}]
)
def test_an_answer_without_a_time_is_found(fault):
    run = sound_run(status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))

    Decision.objects.filter(pk=decision.pk).update(**fault)

    assert "answers_have_a_time" in broken()


def test_an_orphan_is_found():
    parent = sound_run(status="canceled")
    step = make_step(parent, status="canceled", attempts=1)
    child = make_run(parent.owner, parent_step=step, source="parent")

    assert broken() == {"children_end_with_their_parents"}
    Run.objects.filter(pk=child.pk).update(cancel_requested_at=timezone.now())
    assert broken() == set()


def test_a_child_that_was_started_otherwise_is_found():
    waiting_with_child(source="page")

    assert broken() == {"children_end_with_their_parents"}


def test_a_version_of_another_agent_is_found():
    run = sound_run()

    Run.objects.filter(pk=run.pk).update(version=make_version(make_agent()))

    assert broken() == {"runs_fit_their_agents"}


def test_a_key_of_another_user_is_found():
    IdempotencyKey.objects.create(
        user=make_user(), key="k", body_digest="d", run=sound_run()
    )

    assert broken() == {"runs_fit_their_agents"}


@pytest.mark.parametrize(
    "fault", [{"source": "page"}, {"owner": "another"}, {"agent": "another"}]
)
def test_a_run_that_no_schedule_would_have_started_is_found(fault):
    others = {"owner": make_user, "agent": make_agent}
    schedule = make_schedule()
    own = {"agent": schedule.agent, "schedule": schedule, "source": "schedule"}
    make_run(**own)
    assert broken() == set()

    wrong = {name: others.get(name, lambda: "page")() for name in fault}
    make_run(**{**own, "owner": schedule.owner, **wrong})
    assert broken() == {"runs_fit_their_schedules"}


def test_a_last_run_of_another_schedule_is_found():
    schedule, other = make_schedule(), make_schedule()
    own = {"agent": other.agent, "schedule": other, "source": "schedule"}
    Schedule.objects.filter(pk=schedule.pk).update(last_run=make_run(**own))

    assert broken() == {"runs_fit_their_schedules"}


def test_every_rule_but_the_databases_own_has_been_seen_to_break():
    seen = {rule for rule, *_ in [*STEP_FAULTS, *CALL_FAULTS, *RUN_FAULTS]} | {
        "open_decisions_belong_to_awaiting_runs",
        "answers_have_a_time",
        "children_belong_to_their_steps",
        "children_end_with_their_parents",
        "runs_fit_their_agents",
        "runs_fit_their_schedules",
        "leases_are_of_running_runs_only",
        "deliveries_match_their_runs",
        "daily_stats_match_the_runs",
    }

    assert {rule.__name__ for rule in RULES} == seen


def test_forks_did_not_pay_for_their_copies():
    run = sound_run(status="running")
    run.calls.update(cost=0, is_copied=True)

    Run.objects.filter(pk=run.pk).update(
        fork_index=2, model_calls=0, input_tokens=0, output_tokens=0, cost=0
    )

    assert broken() == set()


def test_the_command_names_each_and_exits_with_one():
    one, two = sound_run(), sound_run()
    Run.objects.update(next_index=5)
    out = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("check_invariants", stdout=out)

    assert ended.value.code == 1
    lines = out.getvalue().splitlines()
    assert {line.partition(", the last")[0] for line in lines[:2]} == {
        f"steps_are_contiguous: run {run.pk} has 2 steps" for run in (one, two)
    }
    assert lines[-1] == f"{len(RULES)} rules, 2 violations"


def test_the_command_is_content_with_sound_runs():
    sound_run()
    out = StringIO()

    call_command("check_invariants", stdout=out)

    assert out.getvalue() == f"{len(RULES)} rules, 0 violations\n"


def waiting_with_child(**fields) -> tuple[Run, Run]:
    """Make a run that waits for its child."""
    parent = sound_run(status="waiting")
    step = make_step(parent, status="started", attempts=1)
    fields = {"parent_step": step, "source": "parent", **fields}
    return parent, make_run(parent.owner, **fields)


def test_an_answer_before_the_childs_end_is_found():
    parent, _ = waiting_with_child()
    parent.steps.filter(status="started").update(
        status="succeeded", observation="4", elapsed=0.0
    )

    assert "children_belong_to_their_steps" in broken()


def test_a_waiting_step_without_a_child_is_found():
    parent, _ = waiting_with_child()
    make_step(parent, status="started", attempts=1)

    assert broken() == {"children_belong_to_their_steps"}


def test_a_child_of_another_owner_is_found():
    _, child = waiting_with_child()
    Run.objects.filter(pk=child.pk).update(owner=make_user())

    assert broken() == {"children_belong_to_their_steps"}


def test_what_an_ended_child_used_must_be_counted_by_its_parent():
    parent, child = waiting_with_child(status="succeeded")
    make_call(child, cost="0")

    assert "usage_adds_up" in broken()

    Run.objects.filter(pk=parent.pk).update(
        model_calls=F("model_calls") + 1,
        input_tokens=F("input_tokens") + 100,
        output_tokens=F("output_tokens") + 20,
    )
    assert broken() == {"waiting_runs_wait_for_something"}


def test_deliveries_that_tell_what_happened_break_nothing():
    run = sound_run(status="failed")
    make_delivery(run=run, status="delivered", response_status=204, attempts=1)
    make_delivery(status="failed", error="No response within 10 s.", attempts=7)
    make_delivery()

    assert broken() == set()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"response_status": 500, "attempts": 1}, id="refused"),
        pytest.param({"response_status": 200, "attempts": 0}, id="never-sent"),
        pytest.param({"attempts": 1}, id="no-answer"),
    ],
)
def test_a_delivery_that_nobody_took_is_found(fields):
    make_delivery(status="delivered", **fields)

    assert broken() == {"deliveries_match_their_runs"}


def test_a_delivery_of_a_test_or_of_what_is_still_to_come_is_found():
    for run, more in (
        (sound_run(status="failed", is_test=True), 0),
        (sound_run(status="failed"), 1),
    ):
        delivery = make_delivery(run=run, seq=run.seq + more)
        assert broken() == {"deliveries_match_their_runs"}
        delivery.delete()


def test_a_child_that_needs_somebody_may_be_reported_but_not_its_end():
    _, child = waiting_with_child()
    make_delivery(run=child, event="run.needs_approval")
    assert broken() == set()

    make_delivery(run=child, event="run.failed")
    assert broken() == {"deliveries_match_their_runs"}


def test_a_rule_may_take_longer_than_a_web_request(monkeypatch):
    def read_many_runs():
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SELECT pg_sleep(0.3)")
        yield "run 1 is odd"

    monkeypatch.setattr(invariants, "RULES", (read_many_runs,))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 100")

    assert list(check_invariants()) == [("read_many_runs", "run 1 is odd")]


def test_usage_of_a_run_without_children_is_checked_without_subqueries():
    """One per run would take longer than all other rules together."""
    sound_run()

    with CaptureQueriesContext(connection) as captured:
        assert list(invariants.usage_adds_up()) == []

    childless = [q["sql"] for q in captured if "NOT EXISTS" in q["sql"]]
    assert len(childless) == 2
    assert [sql.count("SELECT") for sql in childless] == [2, 2]


def test_daily_figures_fit_indexed_and_pruned_runs():
    make_old_run(status="failed")
    make_old_run(days=2)
    resume_run(make_old_run(status="failed", days=1), by=None)
    set_rules(failed_runs=30)
    prune()

    assert broken() == set()


@pytest.mark.parametrize("fields", [{"runs": 2}, {"pruned": 1}, {"tokens": 5}])
def test_wrong_daily_figures_are_found(fields):
    make_old_run(days=2)
    DailyRunStats.objects.update(**fields)

    assert broken() == {"daily_stats_match_the_runs"}


def test_a_run_that_the_daily_figures_lack_is_found():
    make_old_run(days=2)
    DailyRunStats.objects.all().delete()

    assert broken() == {"daily_stats_match_the_runs"}
