"""Wakeups go to workers with a free thread, never into the queue of a busy one."""

import asyncio
import threading
from datetime import timedelta
from itertools import pairwise
from statistics import median

import pytest

from runs.models import Run, Worker
from runs.store.claims import MAX_ACTIVE_RUNS
from tests.fakes.model_server import Exchange, Recorded, model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.faults.workers import Workers
from tests.make import make_provider, make_user
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.faults


PATIENT = {"AGENTSITE_LEASE_SECONDS": "30"}
"""No run is given to another worker because the machine is busy."""
WITHOUT_SWEEPS = {**PATIENT, "AGENTSITE_SWEEP_SECONDS": "3600"}


def look_at_input(asked: Recorded) -> object:
    """Call `look` for as many seconds as the person asked for."""
    *_, last = asked.body["messages"]
    if last["role"] == "tool":
        return "Seen."
    return call("look", what=last["content"], seconds=float(last["content"]))


def test_a_full_worker_leaves_wakeups_to_an_idle_one(workers: Workers):
    with model_server(script=look_at_input) as server:
        agent = agent_on(server, "look")
        workers.start(threads=2, **WITHOUT_SWEEPS)
        slow = [started(agent, "600") for _ in range(2)]
        workers.wait_for_line("look 600", times=2)
        workers.start(threads=20, **WITHOUT_SWEEPS)
        idle = Worker.objects.latest("started_at")

        quick = [started(agent, "0") for _ in range(20)]
        for run in quick:
            workers.wait_for(run)

        rows = Run.objects.filter(pk__in=[run.pk for run in slow])
        assert set(rows.values_list("status", flat=True)) == {"running"}
    assert {run.worker_id for run in quick} == {idle.pk}
    assert [run.pk for run in quick if was_enqueued_again(run)] == []


def was_enqueued_again(run: Run) -> bool:
    """Whether a sweep had to send a second wakeup, because the first one waited."""
    assert run.enqueued_at is not None
    return run.enqueued_at - run.queued_at > timedelta(milliseconds=1)


def test_a_thread_that_becomes_free_takes_the_next_run_at_once(workers: Workers):
    with model_server(script=look_at_input) as server:
        agent = agent_on(server, "look")
        workers.start(threads=1, **PATIENT)
        runs = [started(agent, "0") for _ in range(30)]
        for run in runs:
            workers.wait_for(run)

    pauses = pauses_between(runs)
    assert len(pauses) == 29
    # The consumer's own timer fires once per second.
    assert median(pauses) < 0.5


def pauses_between(runs: list[Run]) -> list[float]:
    """Return the seconds in which the only thread was free and the next run waited."""
    times = sorted(
        (run.started_at, run.ended_at, run.queued_at)
        for run in runs
        if run.started_at and run.ended_at
    )
    return [
        (started_at - max(ended_at, queued_at)).total_seconds()
        for (_, ended_at, _), (started_at, _, queued_at) in pairwise(times)
    ]


def test_runs_that_wait_for_a_model_leave_room_for_others(workers: Workers):
    everybody, asked = threading.Event(), list[object]()

    async def hold(exchange: Exchange) -> None:
        asked.append(exchange)
        if len(asked) == MAX_ACTIVE_RUNS + 10:
            everybody.set()
        while not everybody.is_set():
            await asyncio.sleep(0.05)
        message = {"role": "assistant", "content": "Done."}
        await exchange.send_json({"choices": [{"index": 0, "message": message}]})

    script = [{"fault": "hold"}] * (MAX_ACTIVE_RUNS + 10)
    with model_server(script=script, faults={"hold": hold}) as server:
        owner = make_user()
        provider = make_provider(owner, base_url=server.base_url, stream=False)
        agent = agent_on(server, owner=owner, provider=provider)
        workers.start(threads=200, **PATIENT)
        runs = [started(agent) for _ in range(MAX_ACTIVE_RUNS + 10)]
        for run in runs:
            workers.wait_for(run)
