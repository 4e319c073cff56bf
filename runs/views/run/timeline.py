"""The time scale of a run, computed by the database: there may be many rows."""

from datetime import UTC, datetime

from django.db import connection

from runs.models import Run
from runs.ui.time_scale import LONGEST_WAIT, SHOWN_WAIT, Timeline

EPOCH_SECONDS_SQL = {
    "postgresql": "extract(epoch from {0})::float8",
    # SQLite's own functions round to milliseconds, and a moment later than its row's
    # column would miss that row.
    "sqlite": "(strftime('%%s', substr({0}, 1, 19)) + ('0' || substr({0}, 20)))",
}
"""A timestamp as seconds since 1970, exact to the microsecond."""

TIMELINE_SQL = """
WITH failed AS (
    SELECT number, SUM(elapsed + COALESCE(retry_in, 0)) AS seconds
    FROM runs_modelattempt WHERE run_id = %s GROUP BY number
), work AS (
    SELECT 'model' AS kind, {call} AS start,
        {call} + CASE WHEN failed.seconds IS NULL THEN elapsed
            WHEN elapsed > failed.seconds THEN elapsed - failed.seconds
            ELSE COALESCE(first_token, 0) END AS finish
    FROM runs_modelcall c LEFT JOIN failed ON failed.number = c.number
    WHERE c.run_id = %s AND NOT c.is_copied
    UNION ALL
    SELECT CASE WHEN s.usage IS NULL THEN 'tool' ELSE 'run' END,
        {step}, {step} + COALESCE(duration, 0)
    FROM runs_agentstep s WHERE s.run_id = %s AND s.started_at IS NOT NULL
        AND NOT s.is_copied
    UNION ALL
    SELECT 'model', {attempt}, {attempt} + elapsed
    FROM runs_modelattempt a WHERE a.run_id = %s
), seen AS (
    SELECT kind, start, finish, MAX(finish) OVER (
        ORDER BY start, finish ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before
    FROM work
)
SELECT 'wait', start, start - before FROM seen WHERE start - before > %s
UNION ALL
SELECT 'began', MIN(start), 0 FROM seen
UNION ALL
SELECT kind, MAX(finish), SUM(CASE
    WHEN before IS NULL OR before < start THEN finish - start
    WHEN before < finish THEN finish - before
    ELSE 0 END)
FROM seen GROUP BY kind
ORDER BY 2
"""


def load_timeline(run: Run) -> Timeline:
    """Return the time scale of all work, and the duration of each kind.

    Time in which several things ran counts for the one that started first.
    """
    seconds = EPOCH_SECONDS_SQL[connection.vendor]
    sql = TIMELINE_SQL.format(
        call=seconds.format("c.started_at"),
        step=seconds.format("s.started_at"),
        attempt=seconds.format("a.started_at"),
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [run.pk] * 4 + [LONGEST_WAIT])
        rows = cursor.fetchall()
    timeline = Timeline(run.started_at)
    for kind, at, length in rows:
        if at is None:
            continue
        moment = datetime.fromtimestamp(at, UTC)
        if kind == "wait":
            timeline.cuts.append((moment, length - SHOWN_WAIT))
        elif kind == "began":
            set_timeline_start(timeline, moment)
        else:
            timeline.last = max(timeline.last or moment, moment)
            timeline.busy[kind] = length
    if run.status == Run.Status.RUNNING:
        timeline.resume_work(run.queued_at)
    return timeline


def set_timeline_start(timeline: Timeline, first: datetime) -> None:
    """Add when the first work started; rows of a fork are older than their run."""
    began = timeline.began or first
    timeline.began = min(began, first)
    waited = (first - began).total_seconds()
    if waited > LONGEST_WAIT:
        timeline.cuts.insert(0, (first, waited - SHOWN_WAIT))
