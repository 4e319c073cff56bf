"""Stopping a run."""

import pytest

from runs.models import Run
from runs.services.runs.cancel import cancel_run
from tests.make import make_decision, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "status", ["queued", "awaiting_approval", "awaiting_decision", "waiting"]
)
def test_ends_a_run_that_no_worker_holds(status):
    run, person = make_run(status=status), make_user()

    assert cancel_run(run, by=person)
    assert (run.status, run.canceled_by) == ("canceled", person)
    assert run.ended_at is not None


def test_asks_the_worker_that_holds_a_run():
    run = make_run(status="running")

    assert cancel_run(run)
    assert run.status == "running"
    assert run.cancel_requested_at is not None


def test_ends_a_run_whose_worker_is_gone():
    run = make_run(status="running", lease_until="2020-01-01T00:00:00Z")

    assert cancel_run(run)
    assert run.status == "canceled"


@pytest.mark.parametrize("status", ["succeeded", "failed", "limit_reached", "canceled"])
def test_refuses_a_finished_run(status):
    run = make_run(status=status)
    seq = run.seq

    assert not cancel_run(run)
    run.refresh_from_db()
    assert (run.status, run.seq) == (status, seq)


def test_closes_what_was_open():
    run = make_run(status="awaiting_approval")
    step = make_step(run, status="awaiting_approval", effect="side_effect")
    question = make_decision(step)

    cancel_run(run, by=run.owner)
    step.refresh_from_db()
    question.refresh_from_db()
    assert step.status == "canceled"
    assert (question.answer, question.by) == ("withdrawn", run.owner)


def test_says_that_the_outcome_of_a_side_effect_is_unknown():
    run = make_run(status="running", lease_until="2020-01-01T00:00:00Z")
    step = make_step(run, status="started", effect="side_effect")

    cancel_run(run)
    step.refresh_from_db()
    assert step.status == "unknown"


def test_goes_down_to_the_children():
    parent = make_run(status="waiting")
    step = make_step(parent, status="started")
    child = make_run(status="queued", parent_step=step)

    cancel_run(parent)
    assert Run.objects.get(pk=child.pk).status == "canceled"
