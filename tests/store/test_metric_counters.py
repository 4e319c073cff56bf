"""Counters: what each process adds ends up in one row per set of labels."""

import threading

import pytest
from django.db import DatabaseError, connection

from runs.models import MetricCounter
from runs.store import metric_counters
from runs.store.metric_counters import (
    QUEUE_WAIT,
    TOOL_CALLS,
    CounterBatch,
    flush_counters,
    process_counters,
    write_counters,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_counted():
    process_counters.drain()
    yield
    process_counters.drain()


def stored() -> dict[tuple[str, str], float]:
    rows = MetricCounter.objects.values_list("name", "labels", "value")
    return {(name, labels): value for name, labels, value in rows}


def test_two_batches_are_added_up():
    for _ in range(2):
        TOOL_CALLS.add(tool="add", outcome="failed")
        TOOL_CALLS.add(2, tool="add", outcome="failed")
        flush_counters()

    assert stored() == {("tool_calls", '{"outcome": "failed", "tool": "add"}'): 6}


def test_a_histogram_counts_by_its_upper_bounds():
    for seconds in (0.05, 0.1, 0.2, 99_999):
        QUEUE_WAIT.observe(seconds)
    flush_counters()

    assert stored() == {
        ("run_queue_wait_seconds_bucket", '{"le": "0.1"}'): 2,
        ("run_queue_wait_seconds_bucket", '{"le": "0.25"}'): 1,
        ("run_queue_wait_seconds_bucket", '{"le": "+Inf"}'): 1,
        ("run_queue_wait_seconds_sum", "{}"): pytest.approx(99_999.35),
    }


def test_any_text_can_be_a_label():
    TOOL_CALLS.add(tool="\0\ud800𝕏" * 100, outcome='"\n')
    flush_counters()

    assert MetricCounter.objects.count() == 1


def test_a_batch_that_was_not_written_is_not_lost(monkeypatch):
    def fail(_: object) -> None:
        raise DatabaseError

    TOOL_CALLS.add(tool="add", outcome="failed")
    with monkeypatch.context() as away:
        away.setattr(metric_counters, "write_counters", fail)
        with pytest.raises(DatabaseError):
            flush_counters()
    flush_counters()

    assert list(stored().values()) == [1]


def test_nothing_is_counted_twice_if_a_later_statement_fails(monkeypatch):
    inserts = []

    def fail_at_second_insert(execute, sql, params, many, context):
        if sql.startswith("INSERT"):
            inserts.append(sql)
            if len(inserts) == 2:
                raise DatabaseError
        return execute(sql, params, many, context)

    monkeypatch.setattr(metric_counters, "ROWS_PER_STATEMENT", 1)
    for tool in "ab":
        TOOL_CALLS.add(tool=tool, outcome="failed")
    with (
        connection.execute_wrapper(fail_at_second_insert),
        pytest.raises(DatabaseError),
    ):
        flush_counters()
    flush_counters()

    assert list(stored().values()) == [1, 1]


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_lose_no_count():
    def work() -> None:
        for _ in range(20):
            batch = CounterBatch()
            for tool in "abc":
                TOOL_CALLS.add_to(batch, tool=tool, outcome="failed")
            write_counters(batch.drain())
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert list(stored().values()) == [80, 80, 80]
