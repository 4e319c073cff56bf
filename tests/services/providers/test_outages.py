"""Outages: who tests the provider, and who is woken when."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.llm.errors import ModelCallError
from runs.models import ProviderOutage, Run
from runs.services.providers import outages
from runs.services.providers.outages import (
    claim_probe,
    draw_pause,
    end_outages,
    find_open_outage,
    sweep_outages,
)
from tests.make import make_provider, make_run, make_spec

pytestmark = pytest.mark.django_db

AWAY = ModelCallError("transport", "No server answers.", may_retry=True)


def make_waiting_run(provider, **fields):
    now = timezone.now()
    times = {
        "queued_at": now,
        "waiting_since": now,
        "available_at": now + timedelta(minutes=30),
    }
    return make_run(status="waiting", waiting_provider=provider, **{**times, **fields})


def make_outage(provider, **fields):
    now = timezone.now()
    defaults = {
        "started_at": now,
        "probe_at": now - timedelta(seconds=1),
        "error_code": "transport",
        "error_message": "No server answers.",
    }
    return ProviderOutage.objects.create(provider=provider, **{**defaults, **fields})


def record_outage(provider, run, failure=AWAY, *, model="big"):
    outages.record_outage(provider, run, failure, message=str(failure), model=model)


def find_outage(provider, model="big"):
    return find_open_outage(provider, model)


def make_run_of(model, provider):
    spec = make_spec(model={"provider": provider.slug, "model": model})
    return make_waiting_run(provider, spec=spec)


def queued_runs():
    return list(Run.objects.filter(status="queued").order_by("pk"))


def test_the_first_failure_begins_an_outage_and_later_ones_do_not_prolong_it():
    provider = make_provider()
    record_outage(provider, make_run())
    first = find_outage(provider)
    record_outage(provider, make_run(), ModelCallError("transport", "Later."))

    assert first is not None
    assert (first.error_code, first.error_message) == (
        "transport",
        "No server answers.",
    )
    again = find_outage(provider)
    assert (again.started_at, again.probe_at) == (first.started_at, first.probe_at)


def test_an_outage_may_begin_again_before_all_runs_are_woken():
    provider = make_provider()
    make_outage(provider, ended_at=timezone.now())

    record_outage(provider, make_run())

    assert find_outage(provider).probe_at > timezone.now()


def test_one_run_at_a_time_tests_the_provider():
    provider, first, second = make_provider(), make_run(), make_run()
    outage = make_outage(provider)

    assert claim_probe(outage, provider, first)
    assert not claim_probe(outage, provider, second)
    again = find_outage(provider)
    assert claim_probe(again, provider, first)
    assert not claim_probe(again, provider, second)


def test_a_test_that_was_abandoned_is_left_to_another_run():
    provider, second = make_provider(), make_run()
    gone = make_run(status="canceled", cancel_requested_at=timezone.now())
    later = timezone.now() + timedelta(minutes=1)
    outage = make_outage(provider, probe_run=gone, probe_at=later)

    assert claim_probe(outage, provider, second)


def test_a_failed_test_lets_the_next_one_wait():
    provider, run = make_provider(), make_run()
    began = timezone.now() - timedelta(minutes=10)
    make_outage(provider, probe_run=run, started_at=began)

    record_outage(provider, run)

    outage = find_outage(provider)
    assert outage.probe_run is None
    pause = (outage.probe_at - timezone.now()).total_seconds()
    assert 29 < pause <= 60


@pytest.mark.parametrize(
    ("lasted", "least", "most"), [(0, 2.5, 5), (80, 10, 20), (86_400, 30, 60)]
)
def test_pauses_grow_with_the_outage_up_to_a_minute(lasted, least, most):
    pauses = [draw_pause(lasted) for _ in range(50)]

    assert least <= min(pauses) < max(pauses) <= most


def test_a_pause_is_as_long_as_the_server_asks_for():
    assert draw_pause(0, 300) == 300


def test_the_sweep_wakes_the_run_that_has_waited_longest_to_test():
    provider, now = make_provider(), timezone.now()
    make_waiting_run(provider, queued_at=now)
    oldest = make_waiting_run(provider, queued_at=now - timedelta(minutes=1))
    make_outage(provider)
    sweep_outages()
    sweep_outages()

    assert queued_runs() == [oldest]
    assert find_outage(provider).probe_run == oldest


def test_the_sweep_wakes_nobody_before_the_test_is_due():
    provider = make_provider()
    make_waiting_run(provider)
    make_outage(provider, probe_at=timezone.now() + timedelta(minutes=1))

    sweep_outages()

    assert queued_runs() == []


def test_the_end_wakes_a_few_runs_at_once_and_each_reply_more(monkeypatch):
    monkeypatch.setattr(outages, "WOKEN_AT_ONCE", 3)
    monkeypatch.setattr(outages, "WOKEN_PER_SWEEP", 4)
    provider = make_provider()
    for _ in range(10):
        make_waiting_run(provider)
    make_outage(provider)

    woken = []
    for step in (end_outages, end_outages):
        step(provider)
        woken.append(len(queued_runs()))
    for _ in range(2):
        sweep_outages()
        woken.append(len(queued_runs()))

    assert woken == [3, 5, 9, 10]


def test_a_run_that_was_woken_in_vain_pauses_before_it_is_woken_again():
    provider, now = make_provider(), timezone.now()
    since = now - timedelta(minutes=2)
    tired = make_waiting_run(
        provider, waiting_since=since, queued_at=now - timedelta(seconds=20)
    )
    rested = make_waiting_run(
        provider, waiting_since=since, queued_at=now - timedelta(seconds=40)
    )
    make_outage(provider)

    end_outages(provider)

    assert queued_runs() == [rested]
    assert Run.objects.get(pk=tired.pk).status == "waiting"


def test_an_outage_is_gone_when_nobody_waits_any_more():
    provider = make_provider()
    make_waiting_run(provider)
    make_outage(provider, ended_at=timezone.now())

    sweep_outages()
    assert ProviderOutage.objects.exists()
    sweep_outages()
    assert not ProviderOutage.objects.exists()


def test_runs_that_wait_for_another_provider_are_left_alone():
    provider = make_provider()
    make_waiting_run(make_provider())
    make_outage(provider)

    end_outages(provider)

    assert queued_runs() == []


@pytest.mark.parametrize("code", ["overloaded", "timeout"])
def test_a_model_that_fails_alone_keeps_no_other_model_waiting(code):
    provider = make_provider()
    record_outage(provider, make_run(), ModelCallError(code, "Busy."), model="big")

    assert find_outage(provider, "big").model == "big"
    assert find_outage(provider, "small") is None


def test_a_reply_of_another_model_does_not_end_the_outage_of_a_model():
    provider = make_provider()
    big, small = make_run_of("big", provider), make_run_of("small", provider)
    make_outage(provider, model="big")
    make_outage(provider)

    end_outages(provider, "small")

    assert queued_runs() == [small]
    assert find_outage(provider, "big").model == "big"
    assert find_outage(provider, "small") is None
    end_outages(provider, "big")
    assert queued_runs() == [big, small]


def test_a_run_of_the_model_tests_it():
    provider = make_provider()
    make_run_of("small", provider)
    big = make_run_of("big", provider)
    make_outage(provider, model="big")

    sweep_outages()

    assert queued_runs() == [big]


def test_a_test_in_vain_of_the_provider_begins_no_outage_of_the_model():
    provider, run = make_provider(), make_run()
    make_outage(provider, probe_run=run)

    record_outage(provider, run, ModelCallError("overloaded", "Busy."), model="big")

    outage = ProviderOutage.objects.get()
    assert (outage.model, outage.probe_run) == ("", None)
    assert outage.error_code == "overloaded"
