"""Reading what changed in runs since a seq, never a row twice and never one missed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import QuerySet

from runs.models import AgentStep, ModelAttempt, ModelCall, Run

MAX_ROWS = 1_000
"""Of one kind in one batch; a long run comes in several."""

MAX_READS = 3
"""Readings of a run that is written to at the same time."""

R = TypeVar("R", ModelCall, AgentStep)
C = TypeVar("C", ModelCall, AgentStep, ModelAttempt)


@dataclass
class Changes:
    """The rows of one run with `since` < changed seq <= `seq`."""

    run: Run
    since: int
    seq: int
    is_whole: bool = True
    """Whether they reach up to the run's own seq."""
    calls: list[ModelCall] = field(default_factory=list)
    steps: list[AgentStep] = field(default_factory=list)
    attempts: list[ModelAttempt] = field(default_factory=list)


@dataclass(frozen=True)
class Sources:
    """Where runs, calls and steps are read, with the columns a stream needs."""

    runs: "QuerySet[Run]"
    calls: "QuerySet[ModelCall]"
    steps: "QuerySet[AgentStep]"


def read_changes(wanted: dict[int, int], sources: Sources) -> list[Changes]:
    """Return the changes of each run in `wanted` after its seq there.

    The run is read first: what is committed after that has a greater seq, is left out
    here and comes with the next reading. A row that is new here but was changed once
    more meanwhile would come later as a mere change, so such a run is read again.
    """
    found = query_changes(wanted, sources)
    for _ in range(MAX_READS):
        moving = {
            pk: wanted[pk] for pk, changes in found.items() if has_moved_rows(changes)
        }
        if not moving:
            break
        found |= query_changes(moving, sources)
    for changes in found.values():
        drop_later_rows(changes)
    return list(found.values())


def query_changes(wanted: dict[int, int], sources: Sources) -> dict[int, Changes]:
    """Return the changes of each run, some of them perhaps later than its seq."""
    found = {
        run.pk: Changes(run, wanted[run.pk], run.seq)
        for run in sources.runs.filter(pk__in=wanted)
    }
    news = {pk: c.since for pk, c in found.items() if c.seq > c.since}
    if not news:
        return found
    limit = MAX_ROWS if len(news) == 1 else None
    for call in changed_rows(sources.calls, news, limit=limit):
        found[call.run_id].calls.append(call)
    for step in changed_rows(sources.steps, news, limit=limit):
        found[step.run_id].steps.append(step)
    for attempt in rows_since(ModelAttempt.objects.all(), "created_seq", news):
        found[attempt.run_id].attempts.append(attempt)
    if limit:
        for changes in found.values():
            cut_at_last_commit(changes, limit)
    return found


def has_moved_rows(changes: Changes) -> bool:
    """Whether a row that is new here was changed again after the run was read."""
    rows: list[ModelCall | AgentStep] = [*changes.calls, *changes.steps]
    return any(
        is_new_row(row, changes) and row.changed_seq > changes.seq for row in rows
    )


def is_new_row(row: ModelCall | AgentStep, changes: Changes) -> bool:
    """Whether a viewer at the beginning of the changes lacks the row."""
    return changes.since < row.created_seq <= changes.seq


def changed_rows(
    rows: "QuerySet[R]", news: dict[int, int], *, limit: int | None
) -> Iterable[R]:
    """Return the rows after their run's seq, oldest change first."""
    ordered = rows_since(rows, "changed_seq", news).order_by("changed_seq")
    if limit is None:
        return ordered
    some = list(ordered[:limit])
    if len(some) == limit and some[0].changed_seq == some[-1].changed_seq:
        return ordered  # one huge commit cannot be cut
    return some


def rows_since(rows: "QuerySet[C]", column: str, news: dict[int, int]) -> "QuerySet[C]":
    """Return the rows after their run's seq.

    As plain SQL: for fifty runs, Django takes longer to build the condition than the
    database to answer it.
    """
    table = rows.model._meta.db_table
    one = f'("{table}"."run_id" = %s AND "{table}"."{column}" > %s)'
    values = [value for pair in news.items() for value in pair]
    where = " OR ".join([one] * len(news))
    return rows.extra(where=[where], params=values)  # noqa: S610  # our own names only


def cut_at_last_commit(changes: Changes, limit: int) -> None:
    """End at the last commit that was read entirely."""
    kinds: tuple[list[Any], ...] = (changes.calls, changes.steps)
    for rows in kinds:
        if len(rows) == limit:
            last_whole = rows[-1].changed_seq - 1
            if last_whole < changes.seq:
                changes.seq, changes.is_whole = last_whole, False


def drop_later_rows(changes: Changes) -> None:
    """Drop what was committed after the run was read, but for rows new here."""
    upto = changes.seq
    changes.calls = [
        row
        for row in changes.calls
        if row.changed_seq <= upto or is_new_row(row, changes)
    ]
    changes.steps = [
        row
        for row in changes.steps
        if row.changed_seq <= upto or is_new_row(row, changes)
    ]
    changes.attempts = [row for row in changes.attempts if row.created_seq <= upto]
