"""Runs as rows of a table: what each does now, in words."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone

from runs.models import AgentStep, Run

OPEN_STEPS = ["started", "awaiting_approval", "unknown"]


class RunRow(NamedTuple):
    """One run in a list."""

    run: Run
    note: str
    tone: str
    seconds: float | None
    left: float | None
    """Percent of its time that is left; None without a limit."""


def with_doing(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Add `doing`, the tool of the open step, `parent_run`, and what the rows show."""
    open_step = AgentStep.objects.filter(
        run=OuterRef("pk"), status__in=OPEN_STEPS
    ).order_by("-index")
    return runs.select_related("agent", "version", "owner", "spec").annotate(
        doing=Subquery(open_step.values("tool")[:1]),
        parent_run=F("parent_step__run_id"),
    )


def rows_of(runs: Iterable[Run]) -> list[RunRow]:
    """Return the rows; `runs` come from `with_doing`."""
    now = timezone.now()
    return [row_of(run, now) for run in runs]


def row_of(run: Run, now: datetime) -> RunRow:
    """Return one row."""
    note, tone = note_of(run, now)
    seconds = seconds_of(run, now)
    return RunRow(run, note, tone, seconds, time_left(run, seconds))


def note_of(run: Run, now: datetime) -> tuple[str, str]:
    """Say what the run does or why it ended, and in which tone."""
    doing: str = getattr(run, "doing", None) or ""
    match run.status:
        case "queued":
            return ("continues soon" if run.started_at else "in the queue"), ""
        case "running" if run.lease_until is not None and run.lease_until < now:
            return "no sign of life, another worker takes over", "need"
        case "running" if run.cancel_requested_at:
            return "stops now", ""
        case "running":
            return f"round {run.rounds or 1}: {doing or 'the model is asked'}", ""
        case "awaiting_approval":
            return f"{doing or 'a call'} needs a yes", "need"
        case "awaiting_decision":
            return f"did {doing or 'the call'} happen?", "need"
        case "waiting":
            told = f"waits for {doing}" if doing else "waits for another run"
            return "asks the provider again" if run.not_before else told, ""
        case "stopped":
            reason = run.get_stop_reason_display()
            is_limit = run.stop_reason not in ("loop", "expired")
            return f"{'reached its limit of' if is_limit else 'ended by'} {reason}", ""
        case "failed":
            return run.error_message or run.error_code, "bad"
    return (f"fork of {run.forked_from_id}" if run.forked_from_id else ""), ""


def seconds_of(run: Run, now: datetime) -> float | None:
    """Return how long the run has taken, or took."""
    if run.started_at is None:
        return None
    return ((run.ended_at or now) - run.started_at).total_seconds()


def time_left(run: Run, seconds: float | None) -> float | None:
    """Return the percentage of its time limit that is left."""
    limit = run.spec.body.get("executor", {}).get("max_execution_time")
    if not limit or seconds is None:
        return None
    return max(0.0, 100 - 100 * seconds / float(limit))
