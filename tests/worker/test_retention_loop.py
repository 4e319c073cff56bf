"""The thread of a worker that carries out deletion jobs."""

import threading
import time

import pytest

from runs.models import DeletionJob, Run
from runs.services.retention import jobs
from runs.services.retention.jobs import create_prune_job
from runs.store.claims import WorkerState
from runs.worker import background_loops
from runs.worker.background_loops import run_retention_loop
from tests.services.retention.rows import make_old_run, set_rules

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def process(monkeypatch):
    """A worker with the loop in a thread of its own."""
    monkeypatch.setattr(background_loops, "DELETION_SECONDS", 0.02)
    state, stop = WorkerState(), threading.Event()
    thread = threading.Thread(target=run_retention_loop, args=(state, stop))
    thread.start()
    yield state
    state.is_stopping.set()
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def wait_until(is_true, seconds=30.0):
    until = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_worker_carries_out_a_job(process):
    make_old_run()
    set_rules(succeeded_runs=30)
    create_prune_job()

    wait_until(lambda: DeletionJob.objects.get().status == "done")
    assert not Run.objects.exists()


def test_a_shutdown_leaves_the_rest_to_another_worker(process, monkeypatch):
    monkeypatch.setattr(jobs, "PAUSES_PER_BATCH", 1e9)
    monkeypatch.setattr(jobs, "MAX_PAUSE_SECONDS", 600.0)
    make_old_run()
    set_rules(succeeded_runs=30)
    create_prune_job()
    wait_until(lambda: DeletionJob.objects.get().total == 1)

    process.is_stopping.set()

    wait_until(lambda: DeletionJob.objects.get().lease_until is None)
    assert DeletionJob.objects.get().status == "open"
