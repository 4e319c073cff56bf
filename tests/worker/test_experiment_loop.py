"""The thread of a worker that advances experiments."""

import threading
import time

import pytest

from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.store.claims import WorkerState
from runs.worker import experiment_loop
from tests.experiments import end_runs, make_examples, make_revision, turn
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


def test_several_runs_are_judged_at_the_same_time(monkeypatch):
    monkeypatch.setattr(experiment_loop, "IDLE_SECONDS", 0.01)
    asked, stop = list[float](), threading.Event()

    def judge(request):
        asked.append(time.monotonic())
        return {"content": VERDICT, "seconds": LATE}

    with model_server(script=judge) as server:
        experiment = make_judged_experiment(server.base_url, 2)
        turn(experiment)
        end_runs(experiment)
        loop = threading.Thread(
            target=experiment_loop.run_experiment_loop, args=(WorkerState(), stop)
        )
        loop.start()
        try:
            wait_until(lambda: has_ended(experiment), seconds=30)
        finally:
            stop.set()
            loop.join()

    assert list(experiment.cells.values_list("state", "score")) == [("done", 1.0)] * 2
    first, second = asked
    assert second - first < LATE


def has_ended(experiment) -> bool:
    experiment.refresh_from_db()
    return experiment.status == "done"
