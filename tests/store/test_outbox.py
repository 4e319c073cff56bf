"""The outbox: what a change of a run's status tells, and whom."""

import pytest
from django.db import transaction

from runs.models import Delivery, Run
from runs.services.runs.delete import delete_runs
from runs.services.webhooks.manage import delete_webhook
from runs.store.transitions import transition
from tests.make import (
    make_agent,
    make_run,
    make_step,
    make_user,
    make_webhook,
)
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db

MOVES = {
    "awaiting_approval": "run.needs_approval",
    "awaiting_decision": "run.needs_decision",
    "succeeded": "run.succeeded",
    "limit_reached": "run.limit_reached",
    "failed": "run.failed",
    "canceled": "run.canceled",
}
CHANGES = {
    "limit_reached": {"stop_reason": "cost"},
    "failed": {"error_code": "refused", "error_message": 'It said "no" {}%s.'},
    "canceled": {"cancel_requested_at": "2026-01-01T00:00:00Z"},
}


def running(owner=None, **fields) -> Run:
    return make_run(owner, status="running", **fields)


def ended(run: Run, to: str = "failed", **changes) -> Run:
    assert transition(run, to=to, fence=run.fence, **{**CHANGES.get(to, {}), **changes})
    return run


@pytest.mark.parametrize(("status", "event"), MOVES.items())
def test_tells_of_each_state_one_wants_to_know(status, event):
    webhook = make_webhook()
    run = ended(running(webhook.owner), status)

    message = Delivery.objects.get()
    run.refresh_from_db()
    assert (message.webhook, message.run, message.event) == (webhook, run, event)
    assert (message.seq, message.status, message.attempts) == (run.seq, "waiting", 0)
    assert message.created_at == message.available_at == message.enqueued_at


def test_tells_nothing_of_other_states():
    webhook = make_webhook()
    transition(make_run(webhook.owner, status="failed"), to="queued")
    ended(running(webhook.owner), "waiting")

    assert not Delivery.objects.exists()


def test_keeps_what_the_run_was_at_that_moment():
    webhook = make_webhook()
    run = ended(running(webhook.owner, input_tokens=7, output_tokens=3, cost="0.25"))
    Run.objects.filter(pk=run.pk).update(error_code="other", cost=9)

    facts = Delivery.objects.get().facts
    assert facts.pop("cost") == pytest.approx(0.25)
    assert facts == {
        "stop_reason": "",
        "error_code": "refused",
        "error_message": 'It said "no" {}%s.',
        "model_calls": 0,
        "input_tokens": 7,
        "output_tokens": 3,
    }


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"is_on": False}, id="paused"),
        pytest.param({"events": ["run.succeeded"]}, id="another-event"),
        pytest.param({"events": []}, id="no-event"),
    ],
)
def test_tells_a_webhook_nothing_it_did_not_ask_for(fields):
    ended(running(make_webhook(**fields).owner))

    assert not Delivery.objects.exists()


def test_tells_the_webhook_of_one_agent_of_no_other():
    owner = make_user()
    mine, other = make_agent(owner), make_agent(owner)
    make_webhook(owner, agent=mine)
    run = ended(running(agent=mine))
    ended(running(agent=other))

    assert [one.run for one in Delivery.objects.all()] == [run]


def test_a_stranger_receives_nothing_and_a_superuser_what_they_ask_for():
    make_webhook()
    make_webhook(make_user(is_superuser=True))
    make_webhook(everything=True)
    root = make_webhook(make_user(is_superuser=True), everything=True)
    ended(running())

    assert [one.webhook for one in Delivery.objects.all()] == [root]


def test_the_webhook_of_somebody_who_is_switched_off_receives_nothing():
    webhook = make_webhook(make_user(is_active=False))
    ended(running(webhook.owner))

    assert not Delivery.objects.exists()


def test_tests_tell_nothing():
    ended(running(make_webhook().owner, is_test=True))

    assert not Delivery.objects.exists()


@pytest.mark.parametrize("status", MOVES)
def test_what_another_run_asked_for_tells_only_that_it_needs_a_person(status):
    webhook = make_webhook()
    step = make_step(make_run(webhook.owner, status="waiting"), status="started")
    ended(running(webhook.owner, parent_step=step, source="parent"), status)

    assert Delivery.objects.exists() is status.startswith("awaiting")


def test_a_change_that_is_refused_tells_nothing():
    run = running(make_webhook().owner, fence=3)

    assert not transition(run, to="failed", fence=2, **CHANGES["failed"])
    assert not Delivery.objects.exists()


def test_a_change_that_is_taken_back_tells_nothing(monkeypatch):
    rung = []
    monkeypatch.setattr(
        "runs.wakeup._send_task", lambda task, key, *_: rung.append(key)
    )
    run = running(make_webhook().owner)
    with transaction.atomic():
        ended(run)
        transaction.set_rollback(True)

    assert not Delivery.objects.exists()
    assert rung == []


def test_a_run_that_is_resumed_and_ends_again_is_reported_again():
    run = running(make_webhook().owner)
    ended(run)
    transition(run, to="queued")
    Run.objects.filter(pk=run.pk).update(
        status="running", lease_until="2999-01-01T00:00:00Z"
    )
    ended(run, "succeeded")

    events = Delivery.objects.order_by("seq").values_list("event", flat=True)
    assert list(events) == ["run.failed", "run.succeeded"]


@pytest.mark.django_db(transaction=True)
def test_rings_for_each_webhook_after_the_commit(monkeypatch):
    rung = []
    monkeypatch.setattr(
        "runs.wakeup._send_task", lambda task, key, *_: rung.append((task, key))
    )
    owner = make_webhook().owner
    make_webhook(owner)
    ended(running(owner))

    keys = Delivery.objects.values_list("pk", flat=True)
    assert sorted(rung) == [("runs.deliver", key) for key in sorted(keys)]


def test_a_deleted_run_takes_its_deliveries_along():
    run = ended(running(make_webhook().owner))

    assert delete_runs([run], by=run.owner) == 1
    assert not Delivery.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_webhook_deleted_while_runs_end_harms_no_run():
    owner = make_user()
    for _ in range(10):
        webhook = make_webhook(owner)
        runs = [running(owner) for _ in range(3)]

        def end(runs=runs):
            for run in runs:
                ended(run)

        at_once(end, lambda webhook=webhook: delete_webhook(webhook))

    assert Run.objects.filter(status="failed").count() == 30
    assert not Delivery.objects.exists()
