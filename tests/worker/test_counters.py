"""What a worker counts while it executes runs."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run, Worker
from runs.store.claims import WorkerState
from runs.store.metric_counters import process_counters
from runs.worker.execute_run import execute_run
from runs.worker.heartbeat import send_heartbeat
from tests.fakes.model_server import model_server
from tests.make import make_worker
from tests.worker.run_parts import FAULTS, agent_on, call, executed, started

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_counted():
    process_counters.drain()
    yield
    process_counters.drain()


def counted() -> dict[str, float]:
    amounts = process_counters.drain()
    return {f"{name} {labels}": amount for (name, labels), amount in amounts.items()}


def test_counts_starts_model_calls_tokens_and_tools():
    with model_server(script=[call("add", a=1, b=2), "It is 3."]) as server:
        run = executed(agent_on(server, "add"))
    slug = run.agent.provider.slug
    which = f'"model": "{run.agent.model}", "provider": "{slug}"'

    found = counted()

    assert found['runs_started {"source": "page"}'] == 1
    calls = [key for key in found if key.startswith("model_call_seconds_bucket")]
    assert sum(found[key] for key in calls) == 2
    assert found[f'model_tokens {{"direction": "input", {which}}}'] == run.input_tokens
    output = f'model_tokens {{"direction": "output", {which}}}'
    assert found[output] == run.output_tokens
    assert found['tool_calls {"outcome": "succeeded", "tool": "add"}'] == 1


def test_counts_failed_attempts_by_code():
    with model_server(script=[{"fault": "503"}, "Done."], faults=FAULTS) as server:
        run = executed(agent_on(server))

    key = f'{{"code": "overloaded", "provider": "{run.agent.provider.slug}"}}'
    assert counted()[f"model_call_failures {key}"] == 1


def test_counts_a_recovery_and_no_second_start():
    with model_server(script=["Done."]) as server:
        run = started(agent_on(server))
        gone = timezone.now() - timedelta(minutes=1)
        Run.objects.filter(pk=run.pk).update(
            status="running", fence=1, lease_until=gone, started_at=gone
        )
        execute_run(run.pk)

    found = counted()
    assert found["run_recoveries {}"] == 1
    assert not any(key.startswith("runs_started") for key in found)


def test_a_heartbeat_stores_when_the_sweeper_finished():
    process = WorkerState()
    process.worker = make_worker()
    send_heartbeat(process)
    before = Worker.objects.get().last_sweep
    process.swept_at = time.monotonic() - 60
    send_heartbeat(process)

    worker = Worker.objects.get()
    assert before is None
    age = worker.last_heartbeat - worker.last_sweep
    assert 60 <= age.total_seconds() < 65
