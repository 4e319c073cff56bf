"""Ids of the spans of a run: known before a call is made, and the same ever after.

They are computed from the run, so that nothing has to be stored: an export that is
repeated sends the same span ids, and a called service names the span of its call.
"""

import hashlib

from django.conf import settings

from runs.models import Run
from tools.net.trace_context import build_traceparent, is_sampled


def get_trace_id(run: Run) -> str:
    """Return the trace of the run, 32 hex digits: its caller's, or one of its own."""
    if run.traceparent:
        return run.traceparent.split("-")[1]
    return _hash_id(f"trace:{run.pk}:{run.created_at.isoformat()}", size=16)


def get_parent_span_id(run: Run) -> str:
    """Return the span that called the run; empty if there is none."""
    return run.traceparent.split("-")[2] if run.traceparent else ""


def build_run_span_id(run: Run, *, part: int) -> str:
    """Return the span of the run's part between two ends, counted from 0."""
    return _build_span_id(run, f"run:{part}")


def build_call_span_id(run: Run, number: int, *, attempt: int) -> str:
    """Return the span of one attempt of a model call, counted from 1."""
    return _build_span_id(run, f"call:{number}:{attempt}")


def build_tool_span_id(run: Run, index: int) -> str:
    return _build_span_id(run, f"step:{index}")


def build_call_traceparent(run: Run, number: int, *, attempt: int) -> str:
    """Return the header of a model request; empty if nothing is traced."""
    if not settings.OTLP_ENDPOINT:
        return run.traceparent
    return _build_header(run, build_call_span_id(run, number, attempt=attempt))


def build_tool_traceparent(run: Run, index: int) -> str:
    """Return the header of a tool's requests, and the parent of a child run.

    Without an export the caller's header is passed on unchanged.
    """
    if not settings.OTLP_ENDPOINT:
        return run.traceparent
    return _build_header(run, build_tool_span_id(run, index))


def is_run_sampled(run: Run) -> bool:
    """Whether the run is recorded; a caller that samples may have decided against."""
    return not run.traceparent or is_sampled(run.traceparent)


def _build_header(run: Run, span: str) -> str:
    return build_traceparent(get_trace_id(run), span, is_sampled=is_run_sampled(run))


def _build_span_id(run: Run, what: str) -> str:
    return _hash_id(f"span:{run.pk}:{get_trace_id(run)}:{what}", size=8)


def _hash_id(text: str, *, size: int) -> str:
    """Return hex digits that nobody else can compute: sites do not collide."""
    key = hashlib.sha256(settings.SECRET_KEY.encode()).digest()
    return hashlib.blake2b(text.encode(), key=key, digest_size=size).hexdigest()
