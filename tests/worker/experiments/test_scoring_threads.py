"""The threads in which runs of experiments are scored while turns go on."""

import threading
from types import SimpleNamespace

import pytest

from runs.worker import scoring_threads
from runs.worker.scoring_threads import ScoringThreads
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gate():
    """Hold up scores until it is set, at the end of the test at the latest."""
    gate = threading.Event()
    yield gate
    gate.set()


def make_cell(pk: int, experiment: int = 1) -> SimpleNamespace:
    return SimpleNamespace(pk=pk, experiment_id=experiment)


def take_all(threads: ScoringThreads, experiment: int = 1) -> int:
    """Wait until nothing is left to score; return how many were."""
    wait_until(lambda: not threads.list_cells(experiment))
    return threads.take_count(experiment)


def test_runs_are_counted_once_they_are_scored(gate):
    threads = ScoringThreads()
    for pk in range(3):
        threads.add(make_cell(pk), lambda: gate.wait(60))

    assert threads.list_cells(1) == {0, 1, 2}
    assert threads.list_cells(2) == ()
    assert threads.take_count(1) == 0

    gate.set()
    assert take_all(threads) == 3
    assert threads.take_count(1) == 0


def test_an_experiment_has_few_threads(gate):
    threads, running = ScoringThreads(), []

    def score() -> int:
        running.append(1)
        return gate.wait(60)

    for pk in range(12):
        threads.add(make_cell(pk), score)
    wait_until(lambda: len(running) == scoring_threads.THREADS_PER_EXPERIMENT)
    gate.set()

    assert take_all(threads) == 12
    assert len(running) == 12


def test_an_experiment_does_not_wait_for_the_runs_of_another(gate):
    threads = ScoringThreads()
    for pk in range(20):
        threads.add(make_cell(pk), lambda: gate.wait(60))

    threads.add(make_cell(20, experiment=2), lambda: 1)

    assert take_all(threads, 2) == 1
    assert len(threads.list_cells(1)) == 20


def test_without_a_thread_a_run_is_left_for_the_next_turn(gate, monkeypatch):
    monkeypatch.setattr(scoring_threads, "MOST_THREADS", 1)
    threads = ScoringThreads()
    threads.add(make_cell(1), lambda: gate.wait(60))
    threads.add(make_cell(2), lambda: 1)
    threads.add(make_cell(3, experiment=2), lambda: 1)

    assert threads.list_cells(1) == {1, 2}
    assert not threads.list_cells(2)

    gate.set()
    assert take_all(threads) == 2


def test_an_error_is_reported_to_the_turn_and_the_others_are_scored():
    threads = ScoringThreads()

    def fail() -> int:
        raise ValueError("no score")

    threads.add(make_cell(1), fail)
    threads.add(make_cell(2), lambda: 1)

    wait_until(lambda: not threads.list_cells(1))
    with pytest.raises(ValueError, match="no score"):
        threads.take_count(1)
    assert threads.take_count(1) == 0
