"""The state table."""

import itertools

import pytest

from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.store import transitions
from runs.store.transitions import ALLOWED_FROM, claim_run, transition
from tests.make import make_run, make_worker

pytestmark = pytest.mark.django_db

ALLOWED = {
    "queued": "running waiting canceled failed",
    "running": "succeeded limit_reached failed canceled awaiting_approval "
    "awaiting_decision waiting queued",
    "awaiting_approval": "queued canceled limit_reached",
    "awaiting_decision": "queued canceled failed",
    "waiting": "queued canceled failed",
    "limit_reached": "queued",
    "failed": "queued",
    "succeeded": "",
    "canceled": "",
}
"""The table, written a second time on purpose: from each state to the next ones."""


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(Run.Status.values, repeat=2))
)
def test_allows_what_the_table_says(before, after):
    assert (before in ALLOWED_FROM[after]) == (after in ALLOWED[before].split())


@pytest.mark.parametrize("status", ["succeeded", "canceled"])
def test_an_end_is_an_end(status):
    run = make_run(status=status)

    assert not any(transition(run, to=to) for to in Run.Status.values)


def test_raises_seq_with_each_change():
    run = make_run(status="failed")
    transition(run, to="queued")

    assert Run.objects.get(pk=run.pk).seq == run.seq + 1


def test_refuses_an_older_fence():
    run = make_run(status="running", fence=3)

    assert not transition(run, to="succeeded", fence=2)
    assert transition(run, to="succeeded", fence=3)


def test_leaves_a_run_that_a_live_worker_holds():
    assert not transition(make_run(status="running"), to="canceled")


def test_a_claim_is_had_by_one():
    run, worker = make_run(), make_worker()

    assert claim_run(run.pk, worker).fence == 1
    assert claim_run(run.pk, worker) is None


def test_a_claim_frozen_until_a_successor_claimed_returns_nothing(monkeypatch):
    run, select_row = make_run(), transitions.select_row

    def select_late(model, related, *, id):
        """Read after a successor has claimed the run."""
        monkeypatch.setattr(transitions, "select_row", select_row)
        Run.objects.filter(pk=id).update(lease_until="2020-01-01T00:00:00Z")
        successors.append(claim_run(id, None))
        return select_row(model, related, id=id)

    successors: list[Run | None] = []
    monkeypatch.setattr(transitions, "select_row", select_late)

    assert claim_run(run.pk, None) is None
    assert [successor.fence for successor in successors] == [2]


def test_a_claim_waits_for_its_time():
    run = make_run(available_at="2999-01-01T00:00:00Z")

    assert claim_run(run.pk, None) is None


def test_a_lost_lease_is_claimed_with_a_higher_fence_and_counted():
    run = make_run(status="running", fence=4, lease_until="2020-01-01T00:00:00Z")
    claimed = claim_run(run.pk, None)

    assert (claimed.fence, claimed.recoveries) == (5, 1)


@pytest.mark.parametrize("status", [s for s in UNFINISHED_STATUSES if s != "queued"])
def test_nothing_else_can_be_claimed(status):
    assert claim_run(make_run(status=status).pk, None) is None


def test_a_run_that_has_lost_two_workers_is_left_unless_asked_for():
    gone = "2020-01-01T00:00:00Z"
    run = make_run(status="running", recoveries=1, lease_until=gone)

    assert claim_run(run.pk, None) is None
    assert claim_run(run.pk, None, takes_suspects=True).recoveries == 2
