"""A window of a run's rows: filtered, searched, and cut by the database."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Greatest, Lower, StrIndex, Substr

from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.services.health.workers import is_lease_expired
from runs.store.database_clock import read_time_for_runs
from runs.store.history import is_discarded_reply
from runs.ui.highlight import (
    CHARACTERS_BEFORE,
    MAX_EXCERPT_CHARACTERS,
    find_excerpt,
    is_match_visible,
)
from runs.ui.time_scale import Timeline
from runs.views.run.params import RowCounts, RunPageParams
from runs.views.run.rows import (
    CUT_OFF_CODES,
    TimelineRow,
    build_call_row,
    build_failed_row,
    build_step_row,
    get_next_row_number,
    load_failed_attempts,
    query_agent_steps,
    query_model_calls,
)

WINDOW = 100
"""Rows sent at once."""
ERROR_STATUSES = (AgentStep.Status.FAILED,)


@dataclass(frozen=True)
class RowWindow:
    """Some rows, and where more begin."""

    rows: list[TimelineRow]
    earlier: int | None = None
    """Number before which there are more."""
    later: int | None = None
    """Number after which there are more."""


@dataclass(frozen=True)
class MatchingRows:
    """Queries of the rows that match filter and search."""

    calls: "QuerySet[ModelCall]"
    steps: "QuerySet[AgentStep]"

    def filter_rows(self, **bounds: int) -> "MatchingRows":
        """Return those within `row__lt`, `row__gt` and the like."""
        return MatchingRows(self.calls.filter(**bounds), self.steps.filter(**bounds))

    @property
    def exists(self) -> bool:
        return self.calls.exists() or self.steps.exists()


def load_row_window(run: Run, timeline: Timeline, choice: RunPageParams) -> RowWindow:
    """Return the rows around, before or after the selected number.

    Without a selection, a successful run starts at its first row, any other run shows
    its latest rows.
    """
    found = query_matching_rows(run, choice)
    if choice.after is not None or starts_at_first_row(run, choice):
        return _load_rows_after(run, timeline, found, choice.after or 0, choice)
    window = _load_rows_before(
        run, timeline, found, get_row_window_end(run, choice), choice
    )
    if not window.rows and choice.step:  # all matching rows come later
        return _load_rows_after(run, timeline, found, 0, choice)
    return window


def starts_at_first_row(run: Run, choice: RunPageParams) -> bool:
    is_done = run.status in (Run.Status.SUCCEEDED, Run.Status.LIMIT_REACHED)
    return is_done and choice.before is None and not choice.step


def get_row_window_end(run: Run, choice: RunPageParams) -> int:
    """Return the number before which the window ends."""
    end = get_next_row_number(run) + 1
    if choice.before is not None:
        return choice.before
    return min(choice.step + WINDOW // 2, end) if choice.step else end


def _load_rows_before(
    run: Run,
    timeline: Timeline,
    found: MatchingRows,
    before: int,
    choice: RunPageParams,
) -> RowWindow:
    inside = found.filter_rows(row__lt=before)
    rows = build_timeline_rows(
        run,
        timeline,
        list(inside.calls.order_by("-number")[: WINDOW + 1]),
        list(inside.steps.order_by("-index")[: WINDOW + 1]),
        choice.search,
    )
    if before > get_next_row_number(run) and (
        last := build_last_row(run, timeline, choice)
    ):
        rows.append(last)
    shown = rows[-WINDOW:]
    has_later = before <= get_next_row_number(run) and bool(
        found.filter_rows(row__gte=before).exists
        or build_last_row(run, timeline, choice)
    )
    return RowWindow(
        shown,
        earlier=shown[0].number if len(rows) > WINDOW else None,
        later=shown[-1].number if shown and has_later else None,
    )


def _load_rows_after(
    run: Run, timeline: Timeline, found: MatchingRows, after: int, choice: RunPageParams
) -> RowWindow:
    inside = found.filter_rows(row__gt=after) if after else found
    rows = build_timeline_rows(
        run,
        timeline,
        list(inside.calls.order_by("number")[: WINDOW + 1]),
        list(inside.steps.order_by("index")[: WINDOW + 1]),
        choice.search,
    )
    if len(rows) <= WINDOW and (last := build_last_row(run, timeline, choice)):
        rows.append(last)
    shown = rows[:WINDOW]
    has_earlier = bool(after and found.filter_rows(row__lte=after).exists)
    return RowWindow(
        shown,
        earlier=after + 1 if has_earlier else None,
        later=shown[-1].number if len(rows) > WINDOW else None,
    )


def build_last_row(
    run: Run, timeline: Timeline, choice: RunPageParams
) -> TimelineRow | None:
    """Return the row of a model call without a reply, if it matches the filter."""
    if choice.show == "tools":
        return None
    row = build_failed_row(run, timeline)
    if row is None or choice.search.lower() not in row.words.lower():
        return None
    is_left_out = choice.show == "errors" and row.state != "failed"
    return None if is_left_out else row


def build_timeline_rows(
    run: Run,
    timeline: Timeline,
    calls: list[ModelCall],
    steps: list[AgentStep],
    search: str = "",
) -> list[TimelineRow]:
    """Return the rows of calls and steps, ordered by number."""
    failed, resumes = load_failed_attempts(run, calls), list(run.resumes.all())
    now, rows = read_time_for_runs([run]), []
    lost = is_lease_expired(run.status, run.lease_until, now)
    for call in calls:
        before, is_old = failed.get(call.number, []), is_discarded_reply(call, resumes)
        row = build_call_row(call, timeline, before, is_old=is_old)
        rows.append(add_matching_line(row, iter_call_texts(call), search))
    for step in steps:
        row = build_step_row(step, timeline, is_lost=lost)
        rows.append(add_matching_line(row, iter_step_texts(step), search))
    return sorted(rows, key=lambda row: row.number)


def add_matching_line(
    row: TimelineRow, texts: Iterator[str], search: str
) -> TimelineRow:
    """Add an excerpt that matches the search, if the row's own text does not."""
    if not search or is_match_visible(f"{row.name} {row.words}", search):
        return row
    return replace(row, matching_line=find_excerpt(texts, search))


def iter_call_texts(call: ModelCall) -> Iterator[str]:
    """Yield text, reasoning and calls of a reply."""
    yield call.reply.get("text") or ""
    yield call.reply.get("reasoning") or ""
    for asked in call.reply.get("tool_calls") or []:
        yield f"{asked.get('name', '')} {asked.get('arguments', '')}"


def iter_step_texts(step: AgentStep) -> Iterator[str]:
    """Yield the input of a call, and excerpts that the database cut around matches."""
    yield json.dumps(step.tool_input, ensure_ascii=False)
    for name in ("observation", "log"):
        yield getattr(step, f"{name}_hit", "")


def query_matching_rows(run: Run, choice: RunPageParams) -> MatchingRows:
    calls, steps = query_model_calls([run.pk]), query_agent_steps([run.pk])
    if choice.show in ("tools", "errors"):
        calls = calls.none()
    if choice.show == "model":
        steps = steps.none()
    if choice.show == "errors":
        steps = steps.filter(status__in=ERROR_STATUSES)
    if choice.search:
        calls = calls.alias(text=Cast("reply", TextField())).filter(
            build_contains_condition(choice.search, "text")
        )
        steps = steps.alias(asked=Cast("tool_input", TextField())).filter(
            build_contains_condition(
                choice.search, "tool", "observation", "log", "asked"
            )
        )
        steps = steps.annotate(
            observation_hit=excerpt_around("observation", choice.search),
            log_hit=excerpt_around("log", choice.search),
        )
    return MatchingRows(calls, steps)


def count_matching_rows(run: Run, timeline: Timeline, choice: RunPageParams) -> int:
    found = query_matching_rows(run, choice)
    last = build_last_row(run, timeline, choice)
    return found.calls.count() + found.steps.count() + int(last is not None)


def build_contains_condition(words: str, *columns: str) -> Q:
    """Return the condition that one of the columns contains the words.

    JSON may be stored with non-ASCII characters escaped, so both forms are searched.
    """
    escaped = json.dumps(words)[1:-1]
    wanted = Q()
    for column in columns:
        for text in {words, escaped}:
            wanted |= Q(**{f"{column}__icontains": text})
    return wanted


def excerpt_around(column: str, words: str) -> Func:
    """Return the column's text from shortly before the words, else its beginning.

    One character more than a line shows means that there is text before it.
    """
    place = StrIndex(Lower(F(column)), Lower(Value(words)))
    return Substr(
        column,
        Greatest(place - CHARACTERS_BEFORE - 1, Value(1)),
        MAX_EXCERPT_CHARACTERS,
    )


def count_rows(run: Run) -> RowCounts:
    wrong = AgentStep.objects.filter(run=run, status__in=ERROR_STATUSES).count()
    unanswered = int(has_failed_call(run))
    return RowCounts(
        run.next_number + int(has_cut_call(run)), run.next_index, wrong + unanswered
    )


def has_failed_call(run: Run) -> bool:
    """Whether a run ended with a model call without a reply that nobody interrupted."""
    if not run.is_over or run.status == Run.Status.CANCELED:
        return False
    attempts = ModelAttempt.objects.filter(run=run, number=run.next_number)
    code = attempts.order_by("attempt").values_list("code", flat=True).last()
    return code is not None and code not in CUT_OFF_CODES


def has_cut_call(run: Run) -> bool:
    """Whether a run ended with a model call without a reply."""
    if not run.is_over:
        return False
    return ModelAttempt.objects.filter(run=run, number=run.next_number).exists()


def find_next_error(run: Run, after: int) -> int | None:
    """Return the number of the next row with an error, wrapping around at the end."""
    wrong: Any = query_matching_rows(run, RunPageParams(show="errors")).steps
    numbers = wrong.order_by("index").values_list("row", flat=True)
    following = numbers.filter(row__gt=after).first()
    if following is None and has_failed_call(run) and after < get_next_row_number(run):
        following = get_next_row_number(run)
    if following is not None:
        return int(following)
    first = numbers.first()
    if first is None and has_failed_call(run):
        return get_next_row_number(run)
    return None if first is None else int(first)
