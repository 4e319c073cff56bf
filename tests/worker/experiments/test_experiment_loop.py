"""The thread of a worker that keeps the processes for experiments."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs.store.claims import WorkerState
from runs.worker import experiment_loop
from tests.makers.experiments import claim_experiment, make_experiment
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP, FAIL = "import time; time.sleep(60)", "raise SystemExit(3)"
CODE = {"experiments": SLEEP, "bulk": SLEEP}
"""What is run instead of each program."""


@pytest.fixture(autouse=True)
def experiment():
    return make_experiment(1)


@pytest.fixture
def started(monkeypatch) -> list[subprocess.Popen]:
    """Processes that were started; `args` ends with what each was to run."""
    found = []

    def start(command: list[str], *, alive_file: Path | None) -> subprocess.Popen:
        code = CODE[command[0].rpartition(".")[2]]
        if alive_file:
            alive_file.touch()
        found.append(subprocess.Popen([sys.executable, "-c", code, command[0]]))
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


def name_programs(started: list[subprocess.Popen]) -> list[str]:
    return [child.args[-1].rpartition(".")[2] for child in started]


def test_a_worker_starts_two_processes_and_ends_them(started):
    with looking(WorkerState()):
        wait_until(lambda: len(started) == 2)
        wait_until(lambda: {child.poll() for child in started} == {None})

    assert name_programs(started) == ["experiments", "bulk"]
    assert [child.poll() for child in started] == [-15, -15]


def test_a_worker_that_drains_ends_the_processes(started):
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: len(started) == 2)
        worker.is_stopping.set()
        wait_until(lambda: {child.poll() for child in started} == {-15})


def test_the_bulk_queue_is_left_to_the_helper_while_it_lives(started):
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: worker.delegated_queues == {"bulk"})

        started[1].kill()
        wait_until(lambda: not worker.delegated_queues)

    assert started[0].poll() == -15


@pytest.mark.slow
def test_a_helper_that_shows_no_life_is_not_relied_on(started, monkeypatch):
    monkeypatch.setattr(experiment_loop, "SILENT_SECONDS", 5.0)
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: worker.delegated_queues == {"bulk"})
        wait_until(lambda: not worker.delegated_queues)
        assert started[1].poll() is None


def test_a_helper_that_is_frozen_is_killed(started, monkeypatch, settings):
    settings.HANG_SECONDS = 0.5
    monkeypatch.setattr(experiment_loop, "SILENT_SECONDS", 0.2)
    with looking(WorkerState()):
        wait_until(lambda: len(started) == 2)
        wait_until(lambda: started[1].poll() == -9)


def test_a_helper_that_ends_by_itself_is_started_after_a_pause(started, monkeypatch):
    monkeypatch.setitem(CODE, "bulk", "pass")
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: len(started) == 2)
        wait_until(lambda: started[1].poll() == 0)
        time.sleep(0.5)  # many turns of the loop, but less than the pause
        assert len(started) == 2
        assert not worker.delegated_queues


def test_a_program_that_cannot_be_started_is_tried_again(started, monkeypatch):
    tried = []

    def start(command: list[str], **_: object) -> None:
        tried.append(command[0])
        raise OSError("no more processes")

    monkeypatch.setattr(experiment_loop, "start_process", start)
    monkeypatch.setattr(experiment_loop, "RESTART_SECONDS", 0.2)
    with looking(WorkerState()):
        wait_until(lambda: len(tried) >= 2)


@pytest.mark.slow
def test_the_helper_ends_with_the_experiments(started, monkeypatch):
    monkeypatch.setitem(CODE, "experiments", "import time; time.sleep(5)")
    worker = WorkerState()
    with looking(worker):
        wait_until(lambda: len(started) == 2)
        claim_experiment()  # so that this worker does not advance it again
        wait_until(lambda: not worker.delegated_queues)
        wait_until(lambda: started[1].poll() == -15)
        assert len(started) == 2


@pytest.mark.parametrize(
    ("state", "programs"),
    [
        pytest.param({"queues": frozenset({"bulk"})}, ["experiments"], id="bulk alone"),
        pytest.param({"is_helper": True}, [], id="helper"),
    ],
)
def test_who_executes_only_bulk_runs_has_no_helper(started, state, programs):
    worker = WorkerState()
    vars(worker).update(state)
    with looking(worker):
        wait_until(lambda: len(started) == len(programs))
        time.sleep(0.5)  # many turns of the loop, in which no other one is started

    assert name_programs(started) == programs
    assert not worker.delegated_queues


def test_there_is_no_process_for_what_another_one_has(started):
    claim_experiment()

    assert not experiment_loop.has_work(WorkerState())


def test_a_worker_without_the_bulk_queue_starts_none():
    worker = WorkerState()
    assert experiment_loop.has_work(worker)

    worker.queues = frozenset({"live"})
    assert not experiment_loop.has_work(worker)


@pytest.mark.slow
def test_a_process_that_failed_is_started_again_after_a_pause(started, monkeypatch):
    monkeypatch.setitem(CODE, "experiments", FAIL)
    monkeypatch.setattr(experiment_loop, "RESTART_SECONDS", 1.0)
    with looking(WorkerState()):
        wait_until(lambda: name_programs(started).count("experiments") >= 2)
        assert started[0].poll() == 3
