"""One user's many runs do not delay the first run of another user."""

import pytest

from runs.models import Run, Worker
from runs.services.runs.start import start_run
from tests.fakes.model_server import model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.faults.worker.test_busy_worker import PATIENT, look_at_input
from tests.faults.workers import Workers
from tests.worker.run_parts import agent_on, started

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MANY = 2000


def test_the_first_run_of_a_user_passes_thousands_of_another_one(
    workers: Workers, settings
):
    settings.USER_RUNS = 0
    with model_server(script=lambda _: "Done.") as server:
        anns = agent_on(server)
        for _ in range(MANY):
            started(anns)
        bobs = started(agent_on(server))

        workers.start(threads=5)
        workers.wait_for(bobs)

    earlier = Run.objects.filter(agent=anns, started_at__lt=bobs.started_at)
    # Her first ten had the same priority; a few more had slots of their own.
    assert earlier.count() < 20


def test_long_runs_of_one_user_leave_slots_for_others(workers: Workers):
    with model_server(script=look_at_input) as server:
        anns = agent_on(server, "look")
        workers.start(threads=50, **PATIENT)
        for _ in range(60):
            started(anns, "600")
        workers.wait_for_line("look 600", times=40)
        bobs = started(agent_on(server, "look"), "0")
        workers.wait_for(bobs)

    rows = Run.objects.filter(agent=anns, status="running")
    assert rows.count() == 40


def test_a_worker_serves_the_queues_it_was_given(workers: Workers):
    with model_server(script=lambda _: "Done.") as server:
        agent = agent_on(server)
        inputs = {"input": "Go."}
        bulk = start_run(agent, by=agent.owner, inputs=inputs, queue=Run.Queue.BULK)
        live = started(agent)
        workers.start(AGENTSITE_WORKER_QUEUES="live,deliveries")
        workers.wait_for(live)
        workers.wait(lambda: Worker.objects.get().last_sweep is not None)
        bulk.refresh_from_db()
        assert bulk.status == "queued"

        workers.start(AGENTSITE_WORKER_QUEUES="bulk")
        workers.wait_for(bulk)

    queues = Worker.objects.order_by("pk").values_list("queues", flat=True)
    assert list(queues) == ["live,deliveries", "bulk"]
