"""Pruning by rules: what goes, and what stays."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from runs.models import (
    AgentRetention,
    AgentStep,
    Conversation,
    DailyRunDurations,
    DailyRunStats,
    Delivery,
    IdempotencyKey,
    ModelCall,
    Run,
    Schedule,
    Spec,
    Worker,
)
from runs.services.retention.preview import count_prunable
from runs.services.retention.rules import load_rules
from runs.services.runs.delete_rows import OWN_ROWS, REFERENCES, list_relations
from runs.services.search.index_runs import index_runs
from tests.make import (
    make_agent,
    make_call,
    make_delivery,
    make_run,
    make_schedule,
    make_spec,
    make_step,
    make_user,
)
from tests.services.retention.rows import (
    age,
    fill,
    make_conversation,
    make_old_run,
    prune,
    set_rules,
)
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def left() -> set[int]:
    return set(Run.objects.values_list("pk", flat=True))


def test_without_rules_nothing_is_deleted():
    make_old_run(days=4_000)

    assert prune() == {}
    assert len(left()) == 1


def test_prunes_old_runs_with_all_their_rows():
    fill(make_old_run())
    young = fill(make_old_run(days=29))
    set_rules(succeeded_runs=30)

    assert prune() == {"runs": 1}
    assert left() == {young.pk}
    for model, path in OWN_ROWS:
        rows = model._base_manager.values_list(path, flat=True)
        assert set(rows) <= {young.pk}, model
    assert Spec.objects.count() == 1


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        ("succeeded", "succeeded_runs"),
        ("failed", "failed_runs"),
        ("limit_reached", "failed_runs"),
        ("canceled", "canceled_runs"),
    ],
)
def test_each_status_has_its_rule(status, rule):
    kinds = ["succeeded_runs", "failed_runs", "canceled_runs", "test_runs"]
    run = make_old_run(status=status)
    set_rules(**{kind: 30 for kind in kinds if kind != rule})
    assert prune() == {}

    set_rules(**{rule: 30})
    assert prune() == {"runs": 1}
    assert run.pk not in left()


def test_test_runs_have_a_rule_of_their_own():
    make_old_run(is_test=True, status="failed")
    conversation = make_conversation(
        owner=make_user(), agent=make_agent(), is_test=True
    )
    make_old_run(is_test=True, conversation=conversation)
    set_rules(failed_runs=1, succeeded_runs=1, conversations=1)
    assert prune() == {}

    set_rules(test_runs=30)
    assert prune() == {"runs": 2, "conversations": 1}


def test_an_agent_can_keep_its_runs_longer_or_shorter():
    forever, short, usual = make_agent(), make_agent(), make_agent()
    AgentRetention.objects.create(agent=forever, days=None)
    AgentRetention.objects.create(agent=short, days=5)
    kept = make_old_run(agent=forever)
    make_old_run(agent=short, days=6, is_test=True)
    young = make_old_run(agent=usual, days=6)
    set_rules(succeeded_runs=30, test_runs=30)

    assert prune() == {"runs": 1}
    assert left() == {kept.pk, young.pk}


@pytest.mark.parametrize(
    "status", ["queued", "running", "waiting", "awaiting_approval"]
)
def test_an_unfinished_run_stays(status):
    run = age(make_run(status=status), 400)
    set_rules(succeeded_runs=1, failed_runs=1, canceled_runs=1, test_runs=1)

    assert prune() == {}
    assert left() == {run.pk}


def test_a_run_kept_forever_stays():
    run = make_old_run(keep_forever=True)
    set_rules(succeeded_runs=1)

    assert prune() == {}
    assert left() == {run.pk}


def test_a_run_that_is_not_in_the_daily_figures_yet_stays():
    run = make_old_run(indexed=False)
    set_rules(succeeded_runs=1)

    assert prune() == {}
    assert left() == {run.pk}


def test_sub_agent_runs_go_with_their_parent_only():
    parent = make_old_run()
    child = make_old_run(parent_step=make_step(parent), source="parent")
    grandchild = make_old_run(parent_step=make_step(child), source="parent")
    Run.objects.filter(pk=parent.pk).update(ended_at=timezone.now())
    set_rules(succeeded_runs=30)
    assert prune() == {}

    age(parent, 40)
    assert prune() == {"runs": 1, "sub_agent_runs": 2}
    assert left().isdisjoint({parent.pk, child.pk, grandchild.pk})


def test_a_tree_stays_while_a_run_in_it_is_unfinished_or_kept():
    first, second = make_old_run(), make_old_run()
    make_run(parent_step=make_step(first), source="parent", status="running")
    make_old_run(parent_step=make_step(second), source="parent", keep_forever=True)
    set_rules(succeeded_runs=30)

    assert prune() == {}
    assert len(left()) == 4


def test_a_fork_of_a_pruned_run_stays_whole():
    origin = make_old_run()
    step = make_step(origin)
    fork = make_run(forked_from=origin)
    call = make_call(fork, copied_from=step.model_call, is_copied=True)
    copy = make_step(fork, call=call, copied_from=step, is_copied=True)
    set_rules(succeeded_runs=30)

    assert prune() == {"runs": 1}
    for row in (fork, call, copy):
        row.refresh_from_db()
    assert (fork.forked_from, call.copied_from, copy.copied_from) == (None, None, None)
    assert copy.observation == "4"


def test_a_schedule_forgets_its_pruned_run():
    schedule = make_schedule()
    run = make_old_run(agent=schedule.agent, schedule=schedule)
    Schedule.objects.update(last_run=run)
    set_rules(succeeded_runs=30)

    assert prune() == {"runs": 1}
    assert Schedule.objects.get().last_run is None


def test_a_conversation_goes_whole_when_its_last_run_is_old():
    owner, agent = make_user(), make_agent()
    root = make_conversation(owner=owner, agent=agent)
    branch = make_conversation(root=root, branch_at=1)
    make_old_run(owner, agent=agent, conversation=root)
    newest = make_old_run(owner, agent=agent, conversation=branch, days=3)
    set_rules(conversations=30, succeeded_runs=1)
    assert prune() == {}

    age(newest, 31)
    assert prune() == {"runs": 2, "conversations": 1}
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    "fields", [{"keep_forever": True}, {"status": "queued"}, {"indexed": False}]
)
def test_a_conversation_stays_for_one_of_its_runs(fields):
    root = make_conversation(owner=make_user(), agent=make_agent())
    make_old_run(conversation=root)
    if "status" in fields:
        make_run(conversation=root)
    else:
        make_old_run(conversation=root, **fields)
    set_rules(conversations=30)

    assert prune() == {}
    assert len(left()) == 2


def test_an_empty_conversation_goes_by_its_age():
    make_conversation(owner=make_user(), agent=make_agent())
    make_conversation(owner=make_user(), agent=make_agent(), days=2)
    set_rules(conversations=30)

    assert prune() == {"conversations": 1}


def test_the_daily_figures_stay():
    run = make_old_run(input_tokens=7, cost="0.5")
    set_rules(succeeded_runs=30)
    prune()

    row = DailyRunStats.objects.get()
    assert (row.runs, row.tokens, float(row.cost)) == (1, 7, 0.5)
    assert (row.pruned, row.agent, row.owner) == (1, run.agent, run.owner)
    assert DailyRunDurations.objects.get().runs == 1


def test_prunes_other_rows_by_age():
    old = timezone.now() - timedelta(days=40)
    run = make_old_run(days=1)
    AuditEntry.objects.create(at=old, action="made", noun="tool", thing="x")
    AuditEntry.objects.create(action="made", noun="tool", thing="y")
    Session.objects.create(session_key="a", expire_date=old)
    Session.objects.create(session_key="b", expire_date=timezone.now())
    IdempotencyKey.objects.create(user=run.owner, key="k", run=run)
    IdempotencyKey.objects.update(at=old)
    for name in ("idle", "has-runs"):
        Worker.objects.create(
            name=name, host="h", pid=1, started_at=old, last_heartbeat=old
        )
    Run.objects.update(worker=Worker.objects.get(name="has-runs"))
    make_delivery(created_at=old, status="delivered")
    make_delivery(created_at=old)
    kinds = ["audit_entries", "sessions", "idempotency_keys", "workers", "deliveries"]
    set_rules(**dict.fromkeys(kinds, 30))
    expected = dict.fromkeys(kinds, 1)

    assert count_prunable(load_rules(), timezone.now()) == expected
    assert prune() == expected
    assert Worker.objects.get().name == "has-runs"
    assert Delivery.objects.get().status == "waiting"


def test_the_preview_counts_what_goes():
    agent = make_agent()
    AgentRetention.objects.create(agent=agent, days=3)
    root = make_conversation(owner=make_user(), agent=make_agent())
    for run in (make_old_run(), make_old_run(keep_forever=True)):
        make_old_run(parent_step=make_step(run), source="parent")
    make_old_run(conversation=root)
    make_old_run(agent=agent)
    set_rules(succeeded_runs=30, conversations=30)

    counts = count_prunable(load_rules(), timezone.now())

    assert counts == {"succeeded_runs": 1, "conversations": 1, "agents": 1}


def test_every_table_that_refers_to_runs_is_known():
    """A new table with a key to runs, steps or calls needs a line in `delete_rows`."""
    known = {model for model, _ in OWN_ROWS} | {model for model, _ in REFERENCES}
    known |= {Run, AgentStep, ModelCall}
    for model in (Run, AgentStep, ModelCall):
        referring = {relation.related_model for relation in list_relations(model)}
        assert referring <= known, referring - known


def test_many_runs_go_in_small_transactions():
    agent = make_agent()
    spec = make_spec()
    for _ in range(120):
        age(make_run(agent=agent, spec=spec, status="succeeded"), 40)
    index_runs()
    set_rules(succeeded_runs=30)

    assert prune() == {"runs": 120}
    assert DailyRunStats.objects.get().pruned == 120


def test_leaves_no_broken_reference():
    fill(make_old_run())
    set_rules(succeeded_runs=30)
    prune()

    connection.check_constraints()
