"""The state table."""

import itertools

import pytest

from runs.models import Run
from runs.models.runs import UNFINISHED
from runs.services import move as move_module
from runs.services.move import BEFORE, claim, move
from tests.make import make_run, make_worker

pytestmark = pytest.mark.django_db

ALLOWED = {
    "queued": "running cancelled",
    "running": "succeeded stopped failed cancelled awaiting_approval "
    "awaiting_decision waiting queued",
    "awaiting_approval": "queued cancelled stopped",
    "awaiting_decision": "queued cancelled failed",
    "waiting": "queued cancelled",
    "stopped": "queued",
    "failed": "queued",
    "succeeded": "",
    "cancelled": "",
}
"""The table, written a second time on purpose: from each state to the next ones."""


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(Run.Status.values, repeat=2))
)
def test_allows_what_the_table_says(before, after):
    assert (before in BEFORE[after]) == (after in ALLOWED[before].split())


@pytest.mark.parametrize("status", ["succeeded", "cancelled"])
def test_an_end_is_an_end(status):
    run = make_run(status=status)

    assert not any(move(run, to=to) for to in Run.Status.values)


def test_raises_seq_with_each_change():
    run = make_run(status="failed")
    move(run, to="queued")

    assert Run.objects.get(pk=run.pk).seq == run.seq + 1


def test_refuses_an_older_fence():
    run = make_run(status="running", fence=3)

    assert not move(run, to="succeeded", fence=2)
    assert move(run, to="succeeded", fence=3)


def test_leaves_a_run_that_a_live_worker_holds():
    assert not move(make_run(status="running"), to="cancelled")


def test_a_claim_is_had_by_one():
    run, worker = make_run(), make_worker()

    assert claim(run.pk, worker).fence == 1
    assert claim(run.pk, worker) is None


def test_who_was_frozen_in_a_claim_has_nothing_once_a_successor_claimed(monkeypatch):
    run, read = make_run(), move_module.CLAIMED

    class Frozen:
        """The read behind the claim, which comes long after it the first time."""

        def first(self, pk):
            monkeypatch.setattr(move_module, "CLAIMED", read)
            Run.objects.filter(pk=pk).update(lease_until="2020-01-01T00:00:00Z")
            successors.append(claim(pk, None))
            return read.first(pk)

    successors: list[Run | None] = []
    monkeypatch.setattr(move_module, "CLAIMED", Frozen())

    assert claim(run.pk, None) is None
    assert [successor.fence for successor in successors] == [2]


def test_a_claim_waits_for_its_time():
    run = make_run(not_before="2999-01-01T00:00:00Z")

    assert claim(run.pk, None) is None


def test_a_lost_lease_is_claimed_with_a_higher_fence_and_counted():
    run = make_run(status="running", fence=4, lease_until="2020-01-01T00:00:00Z")
    claimed = claim(run.pk, None)

    assert (claimed.fence, claimed.rescues) == (5, 1)


@pytest.mark.parametrize("status", [s for s in UNFINISHED if s != "queued"])
def test_nothing_else_can_be_claimed(status):
    assert claim(make_run(status=status).pk, None) is None


def test_a_run_that_has_lost_two_workers_is_left_unless_asked_for():
    gone = "2020-01-01T00:00:00Z"
    run = make_run(status="running", rescues=1, lease_until=gone)

    assert claim(run.pk, None) is None
    assert claim(run.pk, None, takes_suspects=True).rescues == 2
