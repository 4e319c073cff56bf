"""The model server goes away and comes back: the runs wait without a thread."""

import time

import pytest

from runs.models import ModelAttempt, ProviderOutage, Run
from runs.services.health.invariants import check_invariants
from runs.services.runs.cancel import cancel_run
from runs.services.runs.resume import resume_run
from tests.fakes.model_server import Recorded, model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.make import make_provider, make_user
from tests.support.servers import free_port
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.faults

RUNS = 20
AWAY_SECONDS = 20


def answer(asked: Recorded):
    """Call a tool, then answer; slowly, so that all runs are in flight at once."""
    looks = sum(message["role"] == "tool" for message in asked.body["messages"])
    reply = {"content": "Seen."} if looks else call("look", what="it")
    return {**reply, "seconds": 2.0}


def make_agent_at(port: int, **fields):
    owner = make_user()
    provider = make_provider(owner, base_url=f"http://127.0.0.1:{port}/v1", **fields)
    return agent_on(None, "look", owner=owner, provider=provider)


def count_runs(status: str) -> int:
    return Run.objects.filter(status=status).count()


@pytest.mark.slow
def test_all_runs_in_flight_survive_an_outage(workers):
    port = free_port()
    workers.start(threads=RUNS, AGENTSITE_LEASE_SECONDS="30")
    agent = make_agent_at(port)
    with model_server(script=answer, port=port) as server:
        runs = [started(agent) for _ in range(RUNS)]
        workers.wait(lambda: len(server.requests) >= RUNS)
    time.sleep(AWAY_SECONDS)
    with model_server(script=answer, port=port):
        for run in runs:
            workers.wait_for(run)

    assert {run.output for run in runs} == {"Seen."}
    assert workers.ledger.count("look it") == RUNS
    assert list(check_invariants()) == []


@pytest.mark.slow
def test_a_worker_killed_during_an_outage_delays_nothing(workers):
    port = free_port()
    first = workers.start(threads=4)
    agent = make_agent_at(port)
    runs = [started(agent) for _ in range(6)]
    workers.wait(lambda: count_runs("waiting") >= 2)
    first.kill()
    workers.start(threads=4)
    workers.wait(lambda: count_runs("waiting") == len(runs))
    with model_server(script=answer, port=port):
        for run in runs:
            workers.wait_for(run)

    assert workers.ledger.count("look it") == len(runs)
    assert list(check_invariants()) == []


@pytest.mark.slow
def test_waiting_runs_occupy_no_thread_and_one_at_a_time_tests(workers):
    port = free_port()
    workers.start(threads=2)
    agent = make_agent_at(port)
    runs = [started(agent) for _ in range(8)]
    workers.wait(lambda: count_runs("waiting") == len(runs))
    with model_server(script=["Fine."]) as other:
        good = started(agent_on(other))
        workers.wait_for(good)
    tried = ModelAttempt.objects.count()
    time.sleep(6)

    assert ModelAttempt.objects.count() - tried <= 3
    assert cancel_run(runs[0])
    workers.wait_for(runs[0], "canceled")


@pytest.mark.slow
def test_a_longer_outage_fails_the_run_which_can_be_resumed(workers):
    port = free_port()
    workers.start()
    agent = make_agent_at(port, outage_minutes=0.1)
    run = started(agent)
    workers.wait_for(run, "failed")

    assert run.error_code == "transport"
    assert run.error_message.startswith("The run waited 0.1 minutes for provider ")
    with model_server(script=answer, port=port):
        resume_run(run, by=run.owner)
        workers.wait_for(run)
    workers.wait(lambda: not ProviderOutage.objects.exists())
