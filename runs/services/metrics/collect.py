"""All metrics of this installation, in the text format of Prometheus.

Each value comes from the database or from Redis, so every web process gives the same
answer, and none needs to know of the others.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from django.db import DatabaseError, InterfaceError
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from runs.models import MetricCounter
from runs.services.metrics.gauges import GAUGES, Sample, measure_database, measure_redis
from runs.store.metric_counters import BUCKETS, COUNTERS, HISTOGRAMS, Counter, Histogram

PREFIX = "agentsite_"
MAX_ROWS = 20_000
"""Rows of counters in one answer."""

Totals = dict[str, dict[tuple[str, ...], float]]
"""By the name of a row, and the values of its labels in alphabetical order."""

logger = logging.getLogger(__name__)


def build_registry() -> CollectorRegistry:
    """Return a registry that measures everything when it is written out."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteCollector())
    return registry


class SiteCollector(Collector):
    """Measures at each scrape; omits the metrics of a database that is away."""

    def collect(self) -> Iterator[Metric]:
        samples = list(measure_redis())
        totals: Totals | None = None
        try:
            samples += measure_database()
            totals = load_totals()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The metrics of the database cannot be read: %s", error)
            samples = [one for one in samples if one.name.startswith("redis_")]
            samples.append(Sample("database_up", 0))
        yield from build_gauges(samples)
        if totals is None:  # a 0 would look like a reset of the counter
            return
        yield from (build_counter(one, totals) for one in COUNTERS)
        yield from (build_histogram_family(one, totals) for one in HISTOGRAMS)


def build_gauges(samples: list[Sample]) -> Iterator[GaugeMetricFamily]:
    for gauge in GAUGES:
        family = GaugeMetricFamily(PREFIX + gauge.name, gauge.help, labels=gauge.labels)
        for sample in samples:
            if sample.name == gauge.name:
                family.add_metric(sample.labels, sample.value)
        yield family


def load_totals() -> Totals:
    totals: Totals = defaultdict(dict)
    rows = MetricCounter.objects.order_by("name", "labels")[:MAX_ROWS]
    for name, labels, value in rows.values_list("name", "labels", "value"):
        totals[name][tuple(json.loads(labels).values())] = value
    return totals


def build_counter(counter: Counter, totals: Totals) -> CounterMetricFamily:
    labels = sorted(counter.labels)
    family = CounterMetricFamily(PREFIX + counter.name, counter.help, labels=labels)
    first = {tuple(one[name] for name in labels): 0.0 for one in counter.initial}
    for values, total in (first | totals.get(counter.name, {})).items():
        if len(values) == len(labels):  # of this release
            family.add_metric(values, total)
    return family


def build_histogram_family(
    histogram: Histogram, totals: Totals
) -> HistogramMetricFamily:
    names = sorted(histogram.labels)
    family = HistogramMetricFamily(
        PREFIX + histogram.name, histogram.help, labels=names
    )
    position = sorted((*names, "le")).index("le")
    counts: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for values, count in totals.get(histogram.bucket_name, {}).items():
        if len(values) == len(names) + 1:
            others = values[:position] + values[position + 1 :]
            counts[others][values[position]] = count
    sums = totals.get(histogram.sum_name, {})
    for others, count_by_bound in counts.items():
        family.add_metric(
            others, build_buckets(count_by_bound), sum_value=sums.get(others, 0.0)
        )
    return family


def build_buckets(count_by_bound: dict[str, float]) -> list[tuple[str, float]]:
    """Return the cumulative counts of a histogram, as Prometheus has them."""
    bounds = [*map(str, BUCKETS), "+Inf"]
    counts = accumulate(count_by_bound.get(bound, 0.0) for bound in bounds)
    return list(zip(bounds, counts, strict=True))
