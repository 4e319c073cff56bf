"""Export ended runs as traces: claim, send, record.

A run is marked as due by the statement that ends it. While the collector is away it
stays so, and nothing is lost. A worker that dies between the response and the record
leaves it to another one, which sends the same span ids again.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import httpx
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import QuerySet
from django.db.models.functions import Now

from runs.models import Run
from runs.services.telemetry.otlp import Span, encode_span, encode_traces
from runs.services.telemetry.spans import build_spans, get_unsent_part
from runs.store.database_clock import db_time_from_now
from runs.store.trace_ids import is_run_sampled

logger = logging.getLogger(__name__)

BATCH_SIZE = 20
"""Runs of one export."""
MAX_BODY_BYTES = 2 * 1024 * 1024
"""Bytes of the spans of one request; collectors accept several times as much."""
LEASE_SECONDS = 60.0
TIMEOUT_SECONDS = 10.0
MAX_ANSWER_CHARS = 300
FINAL_STATUSES = (400, 413, 422)
"""Responses to a request that would be refused each time."""


class CollectorUnavailable(Exception):
    """The collector did not accept the spans; they are sent again later."""


@dataclass(frozen=True)
class Collector:
    """Where traces are sent."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    with_content: bool = False


def get_collector() -> Collector | None:
    """Return the collector of the settings; None if there is none."""
    if not settings.OTLP_ENDPOINT:
        return None
    return Collector(
        settings.OTLP_ENDPOINT, settings.OTLP_HEADERS, settings.OTLP_CONTENT
    )


def export_due_runs(collector: Collector) -> int:
    """Export some ended runs; return how many were done.

    Raises `CollectorUnavailable`; the runs are then due again, and so are those of
    requests before that one. Only very large runs need more than one request.
    """
    runs = claim_due_runs()
    try:
        _send_runs(runs, collector)
    except CollectorUnavailable:
        for run in runs:
            _get_claimed(run).update(trace_due_at=Now())
        raise
    for run in runs:
        part = run.resumes.count() + 1
        _get_claimed(run).update(trace_due_at=None, traces_sent=part)
    return len(runs)


def claim_due_runs() -> list[Run]:
    """Claim ended runs that are due for a minute, those that wait longest first."""
    due = Run.objects.filter(trace_due_at__lte=Now(), ended_at__isnull=False)
    found = list(due.order_by("trace_due_at").values_list("pk", flat=True)[:BATCH_SIZE])
    until = db_time_from_now(LEASE_SECONDS)
    taken = [pk for pk in found if due.filter(pk=pk).update(trace_due_at=until)]
    rows = Run.objects.filter(pk__in=taken, ended_at__isnull=False)
    return list(rows.select_related("agent", "owner", "spec", "version").order_by("pk"))


def _get_claimed(run: Run) -> "QuerySet[Run]":
    """Return the run, unless it has ended again since it was claimed."""
    return Run.objects.filter(pk=run.pk, trace_due_at=run.trace_due_at)


def _send_runs(runs: list[Run], collector: Collector) -> None:
    spans = [span for run in runs for span in _build_run_spans(run, collector)]
    if not spans:
        return
    with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
        for batch in split_by_size(spans):
            _post_spans(client, batch, collector)


def _build_run_spans(run: Run, collector: Collector) -> list[Span]:
    """Return the spans of a run; none if the caller's trace is not sampled."""
    part = get_unsent_part(run)
    if part is None or not is_run_sampled(run):
        return []
    try:
        return build_spans(run, part, with_content=collector.with_content)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:  # one odd run must not stop the export of all others
        logger.exception("run %s could not be exported as a trace", run.pk)
        return []


def split_by_size(spans: list[Span]) -> Iterator[list[Span]]:
    """Yield the spans in requests of at most two megabytes, or of one span."""
    sizes, total = [], 0
    for span in spans:
        total += len(encode_span(span))
        sizes.append(total // MAX_BODY_BYTES)
    numbered = zip(sizes, spans, strict=True)
    for _, group in groupby(numbered, key=lambda one: one[0]):
        yield [span for _, span in group]


def _post_spans(client: httpx.Client, spans: list[Span], collector: Collector) -> None:
    release = read_release()
    resource = {
        "service.name": "agentsite",
        "service.version": release,
        "agentsite.url": settings.PUBLIC_URL,
    }
    body = encode_traces(resource, spans, scope="agentsite", version=release)
    headers = {**collector.headers, "content-type": "application/x-protobuf"}
    try:
        answer = client.post(collector.url, content=body, headers=headers)
    except httpx.HTTPError as error:
        raise CollectorUnavailable(str(error) or type(error).__name__) from None
    if answer.is_success:
        return
    said = answer.text[:MAX_ANSWER_CHARS]
    if answer.status_code in FINAL_STATUSES:
        logger.error(
            "the collector refused %s spans with %s: %s",
            *(len(spans), answer.status_code, said),
        )
        return
    raise CollectorUnavailable(f"it responded with {answer.status_code}: {said}")


@cache
def read_release() -> str:
    """Return the version of the product; empty if it is not installed."""
    try:
        return version("agentsite")
    except PackageNotFoundError:
        return ""
