"""`/metrics`: who may read it, and what it says."""

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from runs.models import ProviderOutage
from runs.services.metrics import collect
from runs.services.search.index_runs import index_runs
from runs.store.database_clock import db_time_from_now
from runs.store.metric_counters import MODEL_CALL_SECONDS, CounterBatch, write_counters
from tests.make import (
    make_decision,
    make_delivery,
    make_provider,
    make_run,
    make_step,
    make_user,
    make_worker,
)

pytestmark = pytest.mark.django_db

TOKEN = "0123456789abcdef"


@pytest.fixture
def scrape(client, settings, redis_url):
    """Return a function that reads all values, by name and labels."""
    settings.METRICS_TOKEN = TOKEN

    def read() -> dict[str, float]:
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        families = text_string_to_metric_families(answer.content.decode())
        return {
            name_of(sample.name, sample.labels): sample.value
            for family in families
            for sample in family.samples
        }

    return read


def name_of(name: str, labels: dict[str, str]) -> str:
    """Return `runs{queued}`: a name with the values of its labels."""
    words = ",".join(labels[label] for label in sorted(labels))
    name = name.removeprefix("agentsite_")
    return f"{name}{{{words}}}" if words else name


def test_without_a_token_in_the_settings_there_is_no_such_page(client):
    client.force_login(make_user(is_superuser=True))

    assert client.get("/metrics").status_code == 404


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="none"),
        pytest.param("Bearer wrong", id="wrong"),
        pytest.param(f"Basic {TOKEN}", id="scheme"),
        pytest.param("Bearer ", id="empty"),
        pytest.param("Bearer \xe9", id="not-ascii"),
    ],
)
def test_strangers_and_users_get_nothing(client, settings, header):
    settings.METRICS_TOKEN = TOKEN
    client.force_login(make_user(is_superuser=True))

    answer = client.get("/metrics", headers={"Authorization": header})

    assert answer.status_code == 401
    assert b"agentsite_" not in answer.content


def test_counts_what_waits_and_who_works(scrape):
    make_worker(threads=50, running=3, waiting=2, last_sweep=db_time_from_now(-7))
    make_run()
    step = make_step(make_run(status="awaiting_approval"), status="awaiting_approval")
    make_decision(step)
    make_delivery()
    provider = make_provider(slug="local")
    ProviderOutage.objects.create(
        provider=provider,
        started_at=db_time_from_now(-90),
        probe_at=db_time_from_now(5),
        error_code="transport",
        error_message="",
    )
    make_run(
        status="waiting", waiting_provider=provider, waiting_since=db_time_from_now(-9)
    )

    found = scrape()

    assert found["database_up"] == found["redis_up"] == 1
    assert found["runs{queued}"] == found["runs{awaiting_approval}"] == 1
    assert found["runs{running}"] == 0
    assert found["decisions_open{approval}"] == found["deliveries_waiting"] == 1
    assert found["decisions_open{outcome}"] == 0
    assert (found["workers"], found["worker_threads"]) == (1, 50)
    assert (found["worker_threads_busy"], found["worker_model_waits"]) == (3, 2)
    assert 7 <= found["sweep_age_seconds"] < 60
    assert 90 <= found["provider_outage_seconds{,local}"] < 150
    assert found["provider_waiting_runs{local}"] == 1


def test_counts_runs_that_have_ended_once_each_time_they_end(scrape):
    make_run(status="succeeded")
    make_run(status="failed", error_code="transport", error_message="Away.")
    make_run(status="limit_reached", stop_reason="cost")

    index_runs()
    index_runs()
    found = scrape()

    assert found["runs_finished_total{,succeeded}"] == 1
    assert found["runs_finished_total{transport,failed}"] == 1
    assert found["runs_finished_total{cost,limit_reached}"] == 1
    assert found["run_duration_seconds_count{succeeded}"] == 1


def test_a_deleted_run_stays_counted(scrape):
    run = make_run(status="succeeded")
    index_runs()
    run.delete()

    assert scrape()["runs_finished_total{,succeeded}"] == 1


def test_the_buckets_of_a_histogram_are_cumulative(scrape):
    batch = CounterBatch()
    for seconds in (0.2, 4.0, 70_000.0):
        MODEL_CALL_SECONDS.observe_in(batch, seconds, provider="p", model='m"\n\\')
    write_counters(batch.drain())

    found = scrape()

    name = 'model_call_seconds_bucket{%s,m"\n\\,p}'
    assert found[name % "0.1"] == 0
    assert found[name % "0.25"] == 1
    assert found[name % "5.0"] == found[name % "14400.0"] == 2
    assert found[name % "+Inf"] == 3
    assert found['model_call_seconds_sum{m"\n\\,p}'] == pytest.approx(70_004.2)


def test_a_redis_that_is_away_is_a_value(scrape, settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    found = scrape()

    assert (found["redis_up"], found["database_up"]) == (0, 1)


def test_a_database_that_is_away_is_a_value(scrape, monkeypatch):
    def fail() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(collect, "measure_database", fail)

    found = scrape()

    assert (found["redis_up"], found["database_up"]) == (1, 0)
    assert "workers" not in found


@pytest.mark.parametrize("query", ["measure_database", "load_totals"])
def test_counters_that_cannot_be_read_are_missing(scrape, monkeypatch, query):
    def fail() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(collect, query, fail)

    found = scrape()

    assert found["database_up"] == 0
    assert [name for name in found if "_total" in name] == []


def test_more_rows_need_no_more_queries(scrape, django_assert_num_queries):
    with CaptureQueriesContext(connection) as few:
        scrape()
    for _ in range(3):
        make_run(status="waiting", waiting_provider=make_provider())
        make_worker()
        make_delivery()

    with django_assert_num_queries(len(few)):
        scrape()
