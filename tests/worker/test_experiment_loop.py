"""The thread of a worker that keeps the process which advances experiments."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runs.store.claims import WorkerState
from runs.worker import experiment_loop
from tests.experiments import claim_experiment, make_experiment
from tests.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP, FAIL = "import time; time.sleep(60)", "raise SystemExit(3)"


@pytest.fixture(autouse=True)
def experiment():
    return make_experiment(1)


@pytest.fixture
def started(monkeypatch) -> list[subprocess.Popen]:
    """Processes that were started."""
    found = []

    def start() -> subprocess.Popen:
        found.append(subprocess.Popen([sys.executable, "-c", SLEEP]))
        return found[-1]

    monkeypatch.setattr(experiment_loop, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(experiment_loop, "start_process", start)
    return found


@contextmanager
def looking(process: WorkerState) -> Iterator[threading.Event]:
    """Run the loop of a worker for the block."""
    stop = threading.Event()
    loop = threading.Thread(
        target=experiment_loop.run_experiment_loop, args=(process, stop)
    )
    loop.start()
    try:
        yield stop
    finally:
        stop.set()
        loop.join()


def test_a_worker_starts_one_process_and_ends_it(started):
    with looking(WorkerState()):
        wait_until(lambda: started, seconds=20)
        wait_until(lambda: started[0].poll() is None, seconds=20)

    assert [child.poll() for child in started] == [-15]


def test_a_worker_that_drains_ends_the_process(started):
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: started, seconds=20)
        worker.is_stopping.set()
        wait_until(lambda: started[0].poll() == -15, seconds=20)


def test_there_is_no_process_for_what_another_one_has(started):
    claim_experiment()

    assert not experiment_loop.has_work(WorkerState())


def test_a_worker_without_the_bulk_queue_starts_none():
    worker = WorkerState()
    assert experiment_loop.has_work(worker)

    worker.queues = frozenset({"live"})
    assert not experiment_loop.has_work(worker)


def test_a_process_that_failed_is_started_again_after_a_pause(started, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SLEEP", FAIL)
    monkeypatch.setattr(experiment_loop, "RESTART_SECONDS", 1.0)
    with looking(WorkerState()):
        wait_until(lambda: len(started) == 2, seconds=20)
        assert started[0].poll() == 3
