"""Runs as rows of a table, with what each is doing."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import AgentStep, Run
from runs.services.health.workers import can_be_taken_over, is_lease_expired
from runs.services.providers.run_wait import get_run_wait
from runs.services.runs.limit_wait import get_limit_wait
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.store.database_clock import read_time_for_runs
from runs.ui.answer_start import read_answer_start
from runs.ui.error_labels import describe_error
from runs.ui.run_wait import describe_limit_wait, describe_run_wait

OPEN_STEP_STATUSES = ["started", "awaiting_approval", "unknown"]
STOP_REASON_NOTES = {
    "iterations": gettext_lazy("Round limit reached"),
    "time": gettext_lazy("Time limit reached"),
    "tokens": gettext_lazy("Token budget reached"),
    "cost": gettext_lazy("Cost budget reached"),
    "loop": gettext_lazy("Stopped in a loop without progress"),
    "expired": gettext_lazy("Approval expired"),
}


class RunRow(NamedTuple):
    run: Run
    note: str
    tone: str
    seconds: float | None
    """Without waiting for people."""
    left: float | None
    """Percent of the time limit that is left; None without a limit."""
    waited: float = 0.0
    """Seconds in which it waited for people."""
    answer: str = ""
    """Its beginning, if `annotate_answer_start` has read it."""


def annotate_current_tool(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Add `doing`, the tool of the open step, and `parent_run`; join related rows."""
    open_step = AgentStep.objects.filter(
        run=OuterRef("pk"), status__in=OPEN_STEP_STATUSES
    ).order_by("-index")
    runs = runs.select_related("agent", "version", "owner", "spec", "waiting_provider")
    return runs.prefetch_related("waiting_provider__outages").annotate(
        doing=Subquery(open_step.values("tool")[:1]),
        parent_run=F("parent_step__run_id"),
    )


def build_run_rows(runs: Iterable[Run]) -> list[RunRow]:
    """Return the rows of runs from `annotate_current_tool`."""
    found = list(runs)
    now = read_time_for_runs(found)
    has_worker = can_be_taken_over(found, now)
    waits = load_human_waits([run.pk for run in found])
    return [
        build_run_row(run, now, waits.get(run.pk, 0.0), has_worker=has_worker)
        for run in found
    ]


def build_run_row(
    run: Run, now: datetime, waited: float, *, has_worker: bool
) -> RunRow:
    note, tone = describe_activity(run, now, has_worker=has_worker)
    seconds = get_work_seconds(run, waited)
    left = get_time_left_percent(run, seconds)
    return RunRow(run, note, tone, seconds, left, waited, read_answer_start(run))


def describe_activity(run: Run, now: datetime, *, has_worker: bool) -> tuple[str, str]:
    """Return what the run is doing or why it ended, and the tone of that."""
    match run.status:
        case "queued":
            return (_("Continues soon") if run.started_at else _("In the queue")), ""
        case "running" if is_lease_expired(run.status, run.lease_until, now):
            return describe_lost_run(has_worker=has_worker), "need"
        case "awaiting_approval" | "awaiting_decision":
            return describe_open_step(run, now), "need"
        case "running" | "waiting":
            return describe_open_step(run, now), ""
        case "limit_reached":
            return str(STOP_REASON_NOTES.get(run.stop_reason, _("Limit reached"))), ""
        case "failed":
            return describe_error(run.error_message, run.error_code), "bad"
    if run.forked_from_id:
        return _("Fork of %(run)s") % {"run": run.forked_from_id}, ""
    return "", ""


def describe_lost_run(*, has_worker: bool) -> str:
    """Return what happens to a run whose worker has no heartbeat."""
    if has_worker:
        return _("No heartbeat, another worker will take over")
    return _("No heartbeat, and no worker is running to take over")


def describe_open_step(run: Run, now: datetime) -> str:
    tool: str = getattr(run, "doing", None) or ""
    match run.status:
        case "awaiting_approval":
            text = _("Approval required: %(tool)s") if tool else _("Approval required")
        case "awaiting_decision":
            text = _("Unknown outcome: %(tool)s") if tool else _("Unknown outcome")
        case "waiting" if (limit := get_limit_wait(run)) is not None:
            return describe_limit_wait(limit)
        case "waiting" if run.available_at:
            wait = get_run_wait(run)
            if wait is not None:
                return describe_run_wait(wait, now)
            text = _("Waiting to retry the model call")
        case "waiting":
            text = _("Waiting for %(tool)s") if tool else _("Waiting for another run")
        case _status if run.cancel_requested_at:
            text = _("Stopping")
        case _status:
            text = _("Round %(round)s: %(tool)s") if tool else _("Round %(round)s")
    return text % {"tool": tool, "round": run.rounds or 1}


def get_time_left_percent(run: Run, seconds: float | None) -> float | None:
    limit = run.spec.body.get("executor", {}).get("max_execution_time")
    if not limit or seconds is None:
        return None
    return max(0.0, 100 - 100 * seconds / float(limit))
