"""A run whose provider is unavailable waits, tests it, or gives up."""

import asyncio
import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone

from runs.models import ModelAttempt, ProviderOutage, Run
from runs.services.health.invariants import check_invariants
from runs.services.runs.cancel import cancel_run
from runs.store.claims import worker_state
from runs.worker.sweep import sweep
from tests.fakes.model_server import model_server
from tests.make import make_provider, make_user
from tests.support.servers import free_port
from tests.worker.run_parts import agent_on, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Wait hardly at all before quick retries, and know of no outage at first."""
    monkeypatch.setattr("runs.llm.retry.BASE_DELAY", 0.01)
    monkeypatch.setattr(worker_state, "unavailable_providers", frozenset())


def make_agent_at(port, *tools, provider=None, **fields):
    owner = make_user()
    url = f"http://127.0.0.1:{port}/v1"
    provider = make_provider(owner, base_url=url, **(provider or {}))
    return agent_on(None, *tools, owner=owner, provider=provider, **fields)


def make_probe_due():
    ProviderOutage.objects.update(probe_at=timezone.now() - timedelta(seconds=1))


def put_probe_off():
    """Let no run test the provider, however long this test takes."""
    ProviderOutage.objects.update(probe_at=timezone.now() + timedelta(hours=1))


def let_wait_pass(run):
    """Make the run as if it had waited for an hour."""
    Run.objects.filter(pk=run.pk).update(
        waiting_since=timezone.now() - timedelta(hours=1)
    )


def wake(run):
    Run.objects.filter(pk=run.pk).update(available_at="2020-01-01T00:00Z")
    sweep(free=0)
    return go_on(run)


def test_a_run_waits_after_its_quick_retries():
    run = executed(make_agent_at(free_port()))

    assert (run.status, run.lease_until) == ("waiting", None)
    assert run.waiting_provider == run.agent.provider
    assert run.attempts.count() == 5
    outage = ProviderOutage.objects.get()
    assert (outage.error_code, outage.ended_at) == ("transport", None)
    assert list(check_invariants()) == []


def test_other_runs_wait_without_a_call_of_their_own():
    agent = make_agent_at(free_port())
    executed(agent)
    put_probe_off()

    second = executed(agent)

    assert (second.status, second.attempts.count()) == ("waiting", 0)


def test_a_run_in_flight_stops_retrying_when_the_outage_is_known():
    agent = make_agent_at(free_port())
    executed(agent)
    put_probe_off()
    worker_state.unavailable_providers = frozenset()  # as in another process

    second = executed(agent)

    assert (second.status, second.attempts.count()) == ("waiting", 1)


def test_the_tester_makes_one_attempt_and_waits_again():
    run = executed(make_agent_at(free_port()))
    make_probe_due()
    sweep(free=0)

    began = timezone.now()
    go_on(run)

    assert (run.status, run.attempts.count()) == ("waiting", 6)
    outage = ProviderOutage.objects.get()
    assert outage.probe_run is None
    assert outage.probe_at > began


def test_a_successful_test_ends_the_outage_and_wakes_the_others():
    port = free_port()
    agent = make_agent_at(port)
    run, second = executed(agent), executed(agent)
    make_probe_due()
    sweep(free=0)
    with model_server(script=["Fine.", "Fine too."], port=port):
        go_on(run)
        assert (run.status, run.output) == ("succeeded", "Fine.")
        second.refresh_from_db()
        assert second.status == "queued"
        go_on(second)
    sweep(free=0)

    assert (second.status, second.output) == ("succeeded", "Fine too.")
    assert (run.waiting_provider, run.waiting_since) == (None, None)
    assert not ProviderOutage.objects.exists()
    assert list(check_invariants()) == []


def test_the_first_text_of_a_reply_ends_the_outage():
    seen = []

    async def answer_slowly(exchange):
        await exchange.begin_stream()
        delta = {"choices": [{"index": 0, "delta": {"content": "Fi"}}]}
        await exchange.piece(b"data: " + json.dumps(delta).encode() + b"\n\n")
        for _ in range(1200):
            await asyncio.sleep(0.05)
            if await sync_to_async(has_ended)():
                seen.append("ended")
                break
        exchange.cut()

    def has_ended():
        try:
            return not ProviderOutage.objects.filter(ended_at=None).exists()
        finally:
            connection.close()

    port = free_port()
    run = executed(make_agent_at(port))
    make_probe_due()
    sweep(free=0)
    script, faults = [{"fault": "slow"}, "Fine."], {"slow": answer_slowly}
    with model_server(script=script, faults=faults, port=port):
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Fine.")
    assert seen == ["ended"]


@pytest.mark.parametrize("fault", ["html", "503"])
def test_a_proxy_without_its_server_does_not_end_the_outage(fault):
    port = free_port()
    run = executed(make_agent_at(port))
    make_probe_due()
    sweep(free=0)
    with model_server(script=[{"fault": fault}], port=port):
        go_on(run)

    assert run.status == "waiting"
    assert ProviderOutage.objects.get().ended_at is None


@pytest.mark.parametrize("fault", ["400", "401", "429"])
def test_any_response_of_the_server_ends_the_outage(fault):
    port = free_port()
    run = executed(make_agent_at(port))
    make_probe_due()
    sweep(free=0)
    with model_server(script=[{"fault": fault}], port=port):
        go_on(run)

    assert ProviderOutage.objects.get().ended_at is not None


def test_an_overloaded_model_does_not_stop_runs_of_other_models():
    with model_server(script=[*[{"fault": "503"}] * 5, "Fine."]) as server:
        busy = make_agent_at(server.port)
        waiting = executed(busy)
        put_probe_off()
        other = agent_on(None, owner=busy.owner, provider=busy.provider, model="small")
        run = executed(other)
        held = executed(busy)

    assert (waiting.status, ProviderOutage.objects.get().model) == (
        "waiting",
        "model-a",
    )
    assert (run.status, run.output) == ("succeeded", "Fine.")
    assert (held.status, held.attempts.count()) == ("waiting", 0)
    assert ProviderOutage.objects.get().ended_at is None


def test_a_run_that_has_waited_long_enough_fails_without_a_call():
    run = executed(make_agent_at(free_port()))
    let_wait_pass(run)

    wake(run)

    assert (run.status, run.error_code) == ("failed", "transport")
    assert run.error_message.startswith("The run waited 30 minutes for provider ")
    assert "Start it, or check the base URL" in run.error_message
    assert run.attempts.count() == 5
    assert (run.waiting_provider, run.waiting_since) == (None, None)


def test_a_longer_wait_applies_to_runs_that_wait_already():
    run = executed(make_agent_at(free_port()))
    let_wait_pass(run)
    provider = run.waiting_provider
    provider.outage_minutes = 120
    provider.save()

    assert wake(run).status == "waiting"


def test_waiting_is_no_working_time():
    port = free_port()
    agent = make_agent_at(port, executor={"max_execution_time": 5.0})
    run = executed(agent)
    Run.objects.filter(pk=run.pk).update(
        waiting_since=timezone.now() - timedelta(minutes=10)
    )
    make_probe_due()
    sweep(free=0)
    with model_server(script=["Fine."], port=port):
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Fine.")


def test_a_rate_limit_is_waited_for_without_an_outage():
    script = [{"fault": "429"}] * 6
    with model_server(script=[*script, "Fine."]) as server:
        agent = agent_on(server)
        run = executed(agent)
        assert (run.status, run.attempts.count()) == ("waiting", 5)
        wake(run)
        assert (run.status, run.attempts.count()) == ("waiting", 6)
        wake(run)

    assert (run.status, run.output) == ("succeeded", "Fine.")
    assert not ProviderOutage.objects.exists()


def test_a_rate_limit_beyond_the_wait_fails_the_run():
    async def wait_two_hours(exchange):
        await exchange.send_json({"error": {}}, status=429, Retry_After="7200")

    faults = {"two-hours": wait_two_hours}
    with model_server(script=[{"fault": "two-hours"}], faults=faults) as server:
        run = executed(agent_on(server))

    assert (run.status, run.error_code) == ("failed", "rate_limit")


def test_a_waiting_run_can_be_canceled():
    run = executed(make_agent_at(free_port()))

    assert cancel_run(run)

    assert (run.status, run.waiting_provider) == ("canceled", None)


def test_a_provider_that_does_not_wait_fails_the_run_at_once():
    run = executed(make_agent_at(free_port(), provider={"outage_minutes": 0}))

    assert (run.status, run.error_code) == ("failed", "transport")
    assert ModelAttempt.objects.count() == 5
    assert not ProviderOutage.objects.exists()


def test_a_reply_ends_the_outage_when_runs_wait_for_the_provider_no_more():
    port = free_port()
    agent = make_agent_at(port)
    executed(agent)
    agent.provider.outage_minutes = 0
    agent.provider.save()
    with model_server(script=["Fine."], port=port):
        assert executed(agent).status == "succeeded"

    assert not ProviderOutage.objects.filter(ended_at=None).exists()
