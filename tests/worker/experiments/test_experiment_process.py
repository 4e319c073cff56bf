"""The process that advances experiments."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runs.models import Experiment
from runs.services.evaluation import ask_judge
from runs.services.experiments.claim import has_free_experiments, release_experiments
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.worker import experiment_process
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import (
    HOLDER,
    end_runs,
    make_examples,
    make_experiment,
    make_revision,
    turn,
)
from tests.support.rates import use_fresh_rates
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

VERDICT = '{"explanation": "It is right.", "score": 1}'
LATE = 2.0
"""Seconds that a verdict takes."""


def make_judged_experiment(url: str, count: int, *, votes: int = 1, **limits: int):
    owner = make_user()
    provider = make_provider(owner, base_url=url, **limits)
    config = {"provider": provider.slug, "model": "m", "rubric": "Right?"}
    config["votes"] = votes
    return create_experiment(
        make_examples(owner, count),
        [CandidateChoice(make_agent(owner))],
        [make_revision(owner, name="Judge", kind="judge", config=config)],
        by=owner,
        plan=ExperimentPlan(),
    )


@contextmanager
def advancing(stop: threading.Event) -> Iterator[threading.Thread]:
    """Advance experiments in a thread, until the end of the block at the latest."""
    thread = threading.Thread(
        target=experiment_process.advance_until_idle, args=(stop,)
    )
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_several_runs_are_judged_at_the_same_time():
    asked, stop = list[float](), threading.Event()

    def judge(request):
        asked.append(time.monotonic())
        return {"content": VERDICT, "seconds": LATE}

    with model_server(script=judge) as server:
        experiment = make_judged_experiment(server.base_url, 2)
        turn(experiment)
        end_runs(experiment)
        release_experiments(HOLDER)
        with advancing(stop):
            wait_until(lambda: has_ended(experiment))

    assert list(experiment.cells.values_list("state", "score")) == [("done", 1.0)] * 2
    first, second = asked
    assert second - first < LATE


@pytest.fixture
def waiting_judge(monkeypatch) -> Iterator[Experiment]:
    """Make an experiment whose judge waits a minute before its second vote."""
    use_fresh_rates(monkeypatch)
    monkeypatch.setattr(ask_judge, "RENEWED_EVERY", 0.05)
    with model_server(script=[VERDICT]) as server:
        experiment = make_judged_experiment(
            server.base_url, 1, votes=2, requests_per_minute=1
        )
        turn(experiment)
        end_runs(experiment)
        release_experiments(HOLDER)
        yield experiment
        assert len(server.requests) == 1
        wait_until(lambda: not list_scoring_threads())


def list_scoring_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "score"]


def test_a_judge_that_waits_holds_up_no_other_experiment(waiting_judge):
    other = make_experiment(2)
    with advancing(threading.Event()):
        wait_until(lambda: end_runs(other) == 2)
        wait_until(lambda: has_ended(other))
        assert list_scoring_threads()

    assert [cell.state for cell in waiting_judge.cells.all()] == ["started"]


@pytest.mark.slow
def test_nobody_else_scores_a_run_while_a_judge_waits(waiting_judge, settings):
    settings.LEASE_SECONDS, settings.HEARTBEAT_SECONDS = 1.0, 0.2
    with advancing(threading.Event()):
        wait_until(list_scoring_threads)
        until = time.monotonic() + 3 * settings.LEASE_SECONDS
        while time.monotonic() < until:
            assert not has_free_experiments()
            time.sleep(0.05)


@pytest.mark.parametrize(("most", "is_free"), [(60.0, False), (0.0, True)])
@pytest.mark.slow
def test_leases_are_kept_in_a_turn_unless_it_takes_too_long(
    most, is_free, monkeypatch, settings
):
    settings.LEASE_SECONDS, settings.HEARTBEAT_SECONDS = 0.6, 0.1
    monkeypatch.setattr(experiment_process, "MAX_TURN_SECONDS", most)
    make_experiment(1)
    turning, over = threading.Event(), threading.Event()

    def wait(*_: object, **__: object) -> None:
        turning.set()
        over.wait(60)
        raise ValueError

    monkeypatch.setattr(experiment_process, "advance_experiment", wait)
    with advancing(threading.Event()):
        turning.wait(60)
        time.sleep(2 * settings.LEASE_SECONDS)
        was_free = has_free_experiments()
        over.set()

    assert was_free == is_free


@pytest.mark.slow
def test_the_process_ends_without_work(monkeypatch):
    monkeypatch.setattr(experiment_process, "LAST_IDLE_SECONDS", 0.1)
    with advancing(threading.Event()) as thread:
        thread.join(60)
        assert not thread.is_alive()


def test_an_experiment_that_cannot_be_advanced_does_not_stop_others(monkeypatch):
    broken = make_experiment(1)
    fine = make_experiment(1)
    advance = experiment_process.advance_experiment

    def fail_once(experiment, **more):
        if experiment == broken:
            raise ValueError
        return advance(experiment, **more)

    monkeypatch.setattr(experiment_process, "advance_experiment", fail_once)
    with advancing(threading.Event()):
        wait_until(lambda: fine.cells.filter(state="started").exists())

    assert not broken.cells.filter(state="started").exists()
    assert has_free_experiments()  # the process has released both


def has_ended(experiment) -> bool:
    experiment.refresh_from_db()
    return experiment.status == "done"
