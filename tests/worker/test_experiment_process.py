"""The process that advances experiments."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runs.services.experiments.claim import has_free_experiments, release_experiments
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.worker import experiment_process
from tests.experiments import (
    HOLDER,
    end_runs,
    make_examples,
    make_experiment,
    make_revision,
    turn,
)
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

VERDICT = '{"explanation": "It is right.", "score": 1}'
LATE = 2.0
"""Seconds that a verdict takes."""


def make_judged_experiment(url: str, count: int):
    owner = make_user()
    provider = make_provider(owner, base_url=url)
    config = {"provider": provider.slug, "model": "m", "rubric": "Right?"}
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
