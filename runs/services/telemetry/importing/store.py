"""Store spans of other programs, and build their runs; all of a request or nothing.

Spans of a trace arrive in any order and in several requests. One that is known is not
stored again, whatever it says now.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from runs.models import ImportedSpan, ImportedTrace
from runs.services.runs.mask_secrets import TextMask, build_owner_mask
from runs.services.telemetry.importing.conventions import get_span_kind
from runs.services.telemetry.importing.run import build_imported_run
from runs.services.telemetry.importing.spans import ReceivedSpan, TraceRefused
from runs.services.telemetry.importing.valid import SpanFlaw, find_cycles, find_flaw

MAX_SPANS = 2_000
"""Of one trace."""
MAX_TRACES = 200
"""Of one request."""
BATCH_SIZE = 200


class TraceImportResult(NamedTuple):
    """What was not stored, and why; zero and empty if all was."""

    rejected: int = 0
    message: str = ""


def import_spans(spans: Iterable[ReceivedSpan], *, by: User) -> TraceImportResult:
    """Store the spans of a request; raise `TraceRefused` if none of them can be.

    Spans that are not valid are rejected, and the others stored. Spans that belong to
    no agent, model call or tool call are left out without a word.
    """
    flaws: list[SpanFlaw] = []
    traces: dict[str, dict[str, ReceivedSpan]] = defaultdict(dict)
    for span in spans:
        if flaw := find_flaw(span):
            flaws.append(flaw)
        else:
            traces[span.trace_id].setdefault(span.span_id, span)
    if len(traces) > MAX_TRACES:
        raise TraceRefused(
            413, f"The request has more than {MAX_TRACES} traces. Send fewer at once."
        )
    for trace_id in sorted(traces):
        found = traces[trace_id]
        looping = find_cycles({one.span_id: one.parent_id for one in found.values()})
        flaws += [SpanFlaw.CYCLE for _ in looping]
        for span_id in looping:
            del found[span_id]
        for span_id in [key for key in found if get_span_kind(found[key]) is None]:
            del found[span_id]
    if any(traces.values()):
        mask = build_owner_mask(by)
        for trace_id, found in traces.items():
            traces[trace_id] = {key: mask_span(found[key], mask) for key in found}
        with transaction.atomic():
            flaws += _store_traces(traces, by=by)
    return _describe(flaws)


def _store_traces(
    traces: Mapping[str, Mapping[str, ReceivedSpan]], *, by: User
) -> list[SpanFlaw]:
    # Requests of one person take turns: they may be about the same trace, and they
    # share a limit.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    flaws: list[SpanFlaw] = []
    count = 0
    for trace_id, found in sorted(traces.items()):
        if not found:
            continue
        trace = ImportedTrace.objects.filter(owner=by, trace_id=trace_id).first()
        trace = trace or ImportedTrace(owner=by, trace_id=trace_id)
        known = _load_spans(trace)
        new = [found[key] for key in found if key not in known]
        parents = {one.span_id: one.parent_id for one in (*known.values(), *new)}
        looping = find_cycles(parents)
        fitting = [one for one in new if one.span_id not in looping]
        flaws += [SpanFlaw.CYCLE] * (len(new) - len(fitting))
        room = max(MAX_SPANS - len(known), 0)
        flaws += [SpanFlaw.TOO_MANY] * len(fitting[room:])
        fitting = fitting[:room]
        if fitting:
            count += len(fitting)
            _store_trace(trace, fitting, [*known.values(), *fitting])
    _check_daily_limit(by, count)
    return flaws


def _load_spans(trace: ImportedTrace) -> dict[str, ReceivedSpan]:
    if trace.pk is None:
        return {}
    bodies = trace.spans.order_by("pk").values_list("body", flat=True)
    spans = (ReceivedSpan.model_validate(body) for body in bodies)
    return {one.span_id: one for one in spans}


def _store_trace(
    trace: ImportedTrace, new: list[ReceivedSpan], spans: list[ReceivedSpan]
) -> None:
    trace.save()
    ImportedSpan.objects.bulk_create(
        [
            ImportedSpan(trace=trace, span_id=one.span_id, body=one.model_dump())
            for one in new
        ],
        batch_size=BATCH_SIZE,
    )
    build_imported_run(trace, spans)


def mask_span(span: ReceivedSpan, mask: TextMask) -> ReceivedSpan:
    """Return the span without the secrets of its owner, and what looks like one."""
    return span.model_copy(
        update={
            "name": mask.text(span.name),
            "error": mask.text(span.error),
            "attributes": {
                key: mask.mask_text_or_json(value)
                if isinstance(value, str)
                else mask.json(value)
                for key, value in span.attributes.items()
            },
        }
    )


def _check_daily_limit(by: User, count: int) -> None:
    """Raise `TraceRefused`, which takes back what the transaction has stored."""
    limit = settings.TRACE_IMPORT_DAILY_SPANS
    midnight = datetime.combine(
        timezone.now().astimezone(UTC), datetime.min.time(), UTC
    )
    stored = ImportedSpan.objects.filter(trace__owner=by, received_at__gte=midnight)
    if not count or stored.count() <= limit:
        return
    left = midnight + timedelta(days=1) - timezone.now()
    raise TraceRefused(
        429,
        f"More than {limit:,} spans of {by.get_username()} in one day (UTC). Try again "
        "tomorrow, or raise AGENTSITE_TRACE_IMPORT_DAILY_SPANS.",
        retry_seconds=max(int(left.total_seconds()), 1),
    )


def _describe(flaws: list[SpanFlaw]) -> TraceImportResult:
    kinds = sorted(set(flaws))
    said = [f"{flaws.count(kind)}: {kind.describe(MAX_SPANS)}" for kind in kinds]
    return TraceImportResult(
        len(flaws), "Rejected spans. " + " ".join(said) if said else ""
    )
