"""The sweeper."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run
from runs.store.claims import WorkerState
from runs.store.transitions import claim_run
from runs.worker.sweep import sweep
from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db

LONG_AGO = "2020-01-01T00:00:00Z"


def test_wakes_a_worker_for_a_run_whose_wakeup_was_lost():
    run = make_run(enqueued_at=LONG_AGO)

    assert sweep(free=5) == 1
    assert Run.objects.get(pk=run.pk).enqueued_at > timezone.now() - timedelta(
        seconds=5
    )


def test_rings_for_a_run_whose_worker_died():
    now = timezone.now()
    make_run(
        status="running",
        lease_until=now - timedelta(seconds=1),
        enqueued_at=now - timedelta(seconds=3),
    )

    assert sweep(free=5) == 1


@pytest.mark.slow
def test_rings_once_in_a_while():
    make_run(enqueued_at=LONG_AGO)
    sweep(free=5)

    assert sweep(free=5) == 0


def test_leaves_alone_what_is_held_parked_or_over():
    make_run(status="running")
    make_run(status="awaiting_approval")
    make_run(status="succeeded")

    assert sweep(free=5) == 0


def test_rings_for_free_slots_only_oldest_first():
    young, old = make_run(), make_run(queued_at=LONG_AGO)

    assert sweep(free=1) == 1
    assert Run.objects.get(pk=old.pk).enqueued_at is not None
    assert Run.objects.get(pk=young.pk).enqueued_at is None
    assert sweep(free=0) == 0


def test_wakes_a_run_whose_retry_time_has_come():
    run = make_run(status="waiting", available_at=LONG_AGO)
    waits = make_run(status="waiting", available_at="2999-01-01T00:00:00Z")
    sweep(free=0)

    assert Run.objects.get(pk=run.pk).status == "queued"
    assert Run.objects.get(pk=waits.pk).status == "waiting"


def test_recovers_no_run_while_live_workers_may_still_renew_their_leases(settings):
    settings.LEASE_SECONDS = 30
    make_run(status="running", lease_until=timezone.now() - timedelta(seconds=1))
    make_run(enqueued_at=LONG_AGO)
    state = WorkerState()
    assert state.may_recover_runs()

    state.note_database_away()

    assert not state.may_recover_runs()
    assert sweep(free=5, recovers=state.may_recover_runs()) == 1
    assert sweep(free=5, recovers=True) == 1


def test_a_claim_takes_no_run_whose_worker_may_still_renew_its_lease():
    run = make_run(status="running", lease_until=timezone.now() - timedelta(seconds=1))

    assert claim_run(run.pk, None, recovers=False) is None
    assert claim_run(run.pk, None) is not None


def test_a_users_first_run_comes_before_anyones_second():
    ann = make_user()
    days = ("01", "02", "03")
    anns = [make_run(ann, queued_at=f"2020-01-{day}T00:00:00Z") for day in days]
    bobs = make_run()

    assert sweep(free=2) == 2
    enqueued = Run.objects.exclude(enqueued_at=None).values_list("pk", flat=True)
    assert set(enqueued) == {anns[0].pk, bobs.pk}


def test_enqueues_only_runs_of_the_queues_that_the_worker_serves():
    make_run(queue="bulk")

    assert sweep(free=5, queues=["live"]) == 0
    assert sweep(free=5, queues=["bulk"]) == 1
