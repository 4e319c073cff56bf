"""Counters of `/metrics`, summed over all processes in the table `MetricCounter`.

A worker adds to a batch in its memory and writes it with each heartbeat, so a counter
costs no statement where it counts. A process that is killed loses seconds of counts.
Counters do not fall when runs are deleted, which monitoring would take for a restart.
"""

import bisect
import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection, transaction

from runs.models import MetricCounter
from runs.store.fast_insert import quote_name

MAX_LABEL_LENGTH = 100
BUCKETS = (
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    *(120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0),
)
"""Upper bounds of all histograms, in seconds."""
ROWS_PER_STATEMENT = 200


class CounterKey(NamedTuple):
    """A row of `MetricCounter`."""

    name: str
    labels: str


class CounterBatch:
    """Amounts that are not written yet; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: dict[CounterKey, float] = defaultdict(float)

    def add(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        cut = {label: text[:MAX_LABEL_LENGTH] for label, text in labels.items()}
        key = CounterKey(name, json.dumps(cut, sort_keys=True))
        with self._lock:
            self._amounts[key] += amount

    def drain(self) -> dict[CounterKey, float]:
        """Return the amounts and forget them."""
        with self._lock:
            taken, self._amounts = self._amounts, defaultdict(float)
        return taken

    def put_back(self, amounts: Mapping[CounterKey, float]) -> None:
        with self._lock:
            for key, amount in amounts.items():
                self._amounts[key] += amount


process_counters = CounterBatch()
"""What this process has counted since its last heartbeat."""


@dataclass(frozen=True)
class Counter:
    """A metric that only grows; its name without `agentsite_` and `_total`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    initial: tuple[dict[str, str], ...] = ()
    """Labels that are 0 from the start, so that alerts see the first increase."""

    def add(self, amount: float = 1.0, **labels: str) -> None:
        process_counters.add(self.name, amount, labels)

    def add_to(self, batch: CounterBatch, amount: float = 1.0, **labels: str) -> None:
        batch.add(self.name, amount, labels)


@dataclass(frozen=True)
class Histogram:
    """Numbers of seconds, counted by `BUCKETS`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()

    def observe(self, seconds: float, **labels: str) -> None:
        self.observe_in(process_counters, seconds, **labels)

    def observe_in(self, batch: CounterBatch, seconds: float, **labels: str) -> None:
        seconds = max(seconds, 0.0)
        position = bisect.bisect_left(BUCKETS, seconds)
        bound = str(BUCKETS[position]) if position < len(BUCKETS) else "+Inf"
        batch.add(self.bucket_name, 1.0, {**labels, "le": bound})
        batch.add(self.sum_name, seconds, labels)

    @property
    def bucket_name(self) -> str:
        return f"{self.name}_bucket"

    @property
    def sum_name(self) -> str:
        return f"{self.name}_sum"


RUNS_STARTED = Counter("runs_started", "Runs that a worker began.", ("source",))
RUNS_FINISHED = Counter(
    "runs_finished",
    "Runs that ended, by status and by error code or limit.",
    ("status", "reason"),
    ({"status": "failed", "reason": "crashed_repeatedly"},),
)
RUN_RECOVERIES = Counter(
    "run_recoveries",
    "Runs taken over from a worker that died or lost its lease.",
    initial=({},),
)
RUN_SECONDS = Histogram(
    "run_duration_seconds",
    "From the first start of a run to its end, without waiting for people.",
    ("status",),
)
QUEUE_WAIT = Histogram(
    "run_queue_wait_seconds", "How long runs were queued before they first started."
)
MODEL_CALL_SECONDS = Histogram(
    "model_call_seconds", "Model calls that got a reply.", ("provider", "model")
)
FIRST_TOKEN_SECONDS = Histogram(
    "model_first_token_seconds",
    "Time to the first text of streamed replies.",
    ("provider", "model"),
)
MODEL_CALL_FAILURES = Counter(
    "model_call_failures", "Failed attempts of model calls.", ("provider", "code")
)
MODEL_TOKENS = Counter(
    "model_tokens",
    "Tokens of model calls; the direction is input or output.",
    ("provider", "model", "direction"),
)
MODEL_COST = Counter(
    "model_cost", "Cost of model calls by the price table.", ("provider", "model")
)
TOOL_CALLS = Counter(
    "tool_calls",
    "Calls of tools; the outcome is succeeded or failed.",
    ("tool", "outcome"),
)
TOOL_SECONDS = Counter("tool_call_seconds", "Total duration of these calls.", ("tool",))
WEBHOOK_ATTEMPTS = Counter(
    "webhook_attempts",
    "Requests to webhooks; the outcome is delivered or failed.",
    ("outcome",),
)

COUNTERS = (
    *(RUNS_STARTED, RUNS_FINISHED, RUN_RECOVERIES, MODEL_CALL_FAILURES),
    *(MODEL_TOKENS, MODEL_COST, TOOL_CALLS, TOOL_SECONDS, WEBHOOK_ATTEMPTS),
)
HISTOGRAMS = (RUN_SECONDS, QUEUE_WAIT, MODEL_CALL_SECONDS, FIRST_TOKEN_SECONDS)


def flush_counters() -> None:
    """Write what this process has counted; keep all of it if that fails."""
    amounts = process_counters.drain()
    try:
        with transaction.atomic():
            write_counters(amounts)
    except BaseException:
        process_counters.put_back(amounts)
        raise


def write_counters(amounts: Mapping[CounterKey, float]) -> None:
    """Add to the rows, in one order, so that two workers do not deadlock."""
    keys = sorted(amounts)
    for start in range(0, len(keys), ROWS_PER_STATEMENT):
        _upsert({key: amounts[key] for key in keys[start : start + ROWS_PER_STATEMENT]})


def _upsert(amounts: Mapping[CounterKey, float]) -> None:
    table = quote_name(MetricCounter._meta.db_table)
    rows = ", ".join(["(%s, %s, %s)"] * len(amounts))
    sql = (
        f"INSERT INTO {table} (name, labels, value) VALUES {rows} "  # noqa: S608  (our own names)
        "ON CONFLICT (name, labels) "
        f"DO UPDATE SET value = {table}.value + excluded.value"
    )
    values = [part for key, amount in amounts.items() for part in (*key, amount)]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
