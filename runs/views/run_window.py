"""A window of a run's rows: filtered, searched, and cut by the database."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Greatest, Lower, StrIndex, Substr

from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.services.record import is_set_aside
from runs.views.hits import AROUND, BEFORE, is_seen, line_around
from runs.views.run_choice import Choice, Counts
from runs.views.run_rows import (
    Row,
    attempts_of,
    call_row,
    calls_of,
    failed_row,
    next_number,
    step_row,
    steps_of,
)
from runs.views.run_state import is_lost
from runs.views.timeline import Timeline

WINDOW = 100
"""Rows sent at once."""
WRONG = (AgentStep.Status.FAILED,)


@dataclass(frozen=True)
class Window:
    """Some rows, and how they can be gone on from."""

    rows: list[Row]
    earlier: int | None = None
    """Number before which there are more."""
    later: int | None = None
    """Number after which there are more."""


@dataclass(frozen=True)
class Found:
    """The rows of a run that a choice leaves, not read yet."""

    calls: "QuerySet[ModelCall]"
    steps: "QuerySet[AgentStep]"

    def within(self, **bounds: int) -> "Found":
        """Return those whose number keeps `row__lt`, `row__gt` …"""
        return Found(self.calls.filter(**bounds), self.steps.filter(**bounds))

    @property
    def is_any(self) -> bool:
        """Whether there are any."""
        return self.calls.exists() or self.steps.exists()


def window_of(run: Run, timeline: Timeline, choice: Choice) -> Window:
    """Return the rows around, before or after the chosen number.

    Without one, a run that went well begins at its beginning, any other shows its
    newest rows.
    """
    found = found_in(run, choice)
    if choice.after is not None or begins_at_its_beginning(run, choice):
        return _after(run, timeline, found, choice.after or 0, choice)
    window = _before(run, timeline, found, place_before(run, choice), choice)
    if not window.rows and choice.step:  # all that the filter leaves is later
        return _after(run, timeline, found, 0, choice)
    return window


def begins_at_its_beginning(run: Run, choice: Choice) -> bool:
    """Whether the first rows are shown first."""
    is_done = run.status in (Run.Status.SUCCEEDED, Run.Status.STOPPED)
    return is_done and choice.before is None and not choice.step


def place_before(run: Run, choice: Choice) -> int:
    """Return the number before which the window ends."""
    end = next_number(run) + 1
    if choice.before is not None:
        return choice.before
    return min(choice.step + WINDOW // 2, end) if choice.step else end


def _before(
    run: Run, timeline: Timeline, found: Found, before: int, choice: Choice
) -> Window:
    inside = found.within(row__lt=before)
    rows = made(
        run,
        timeline,
        list(inside.calls.order_by("-number")[: WINDOW + 1]),
        list(inside.steps.order_by("-index")[: WINDOW + 1]),
        choice.search,
    )
    if before > next_number(run) and (last := last_row(run, timeline, choice)):
        rows.append(last)
    shown = rows[-WINDOW:]
    has_later = before <= next_number(run) and bool(
        found.within(row__gte=before).is_any or last_row(run, timeline, choice)
    )
    return Window(
        shown,
        earlier=shown[0].number if len(rows) > WINDOW else None,
        later=shown[-1].number if shown and has_later else None,
    )


def _after(
    run: Run, timeline: Timeline, found: Found, after: int, choice: Choice
) -> Window:
    inside = found.within(row__gt=after) if after else found
    rows = made(
        run,
        timeline,
        list(inside.calls.order_by("number")[: WINDOW + 1]),
        list(inside.steps.order_by("index")[: WINDOW + 1]),
        choice.search,
    )
    if len(rows) <= WINDOW and (last := last_row(run, timeline, choice)):
        rows.append(last)
    shown = rows[:WINDOW]
    has_earlier = bool(after and found.within(row__lte=after).is_any)
    return Window(
        shown,
        earlier=after + 1 if has_earlier else None,
        later=shown[-1].number if len(rows) > WINDOW else None,
    )


def last_row(run: Run, timeline: Timeline, choice: Choice) -> Row | None:
    """Return the line of a model call without a reply, where the choice leaves it."""
    if choice.show == "tools":
        return None
    row = failed_row(run, timeline)
    if row is None or choice.search.lower() not in row.words.lower():
        return None
    is_left_out = choice.show == "errors" and row.state != "failed"
    return None if is_left_out else row


def made(
    run: Run,
    timeline: Timeline,
    calls: list[ModelCall],
    steps: list[AgentStep],
    search: str = "",
) -> list[Row]:
    """Return the lines of calls and steps in the order of their numbers."""
    failed, resumes = attempts_of(run, calls), list(run.resumes.all())
    lost, rows = is_lost(run.status, run.lease_until), []
    for call in calls:
        before, is_old = failed.get(call.number, []), is_set_aside(call, resumes)
        row = call_row(call, timeline, before, is_old=is_old)
        rows.append(with_hit(row, texts_of_call(call), search))
    for step in steps:
        row = step_row(step, timeline, is_lost=lost)
        rows.append(with_hit(row, texts_of_step(step), search))
    return sorted(rows, key=lambda row: row.number)


def with_hit(row: Row, texts: Iterator[str], search: str) -> Row:
    """Give `row` the line that was searched for, where its own words lack it."""
    if not search or is_seen(f"{row.name} {row.words}", search):
        return row
    return replace(row, hit=line_around(texts, search))


def texts_of_call(call: ModelCall) -> Iterator[str]:
    """Yield what a reply says, thinks and asks for."""
    yield call.reply.get("text") or ""
    yield call.reply.get("reasoning") or ""
    for asked in call.reply.get("tool_calls") or []:
        yield f"{asked.get('name', '')} {asked.get('arguments', '')}"


def texts_of_step(step: AgentStep) -> Iterator[str]:
    """Yield what a call was given, and what the database cut around the hits."""
    yield json.dumps(step.tool_input, ensure_ascii=False)
    for name in ("observation", "log"):
        yield getattr(step, f"{name}_hit", "")


def found_in(run: Run, choice: Choice) -> Found:
    """Return the rows that filter and search leave."""
    calls, steps = calls_of([run.pk]), steps_of([run.pk])
    if choice.show in ("tools", "errors"):
        calls = calls.none()
    if choice.show == "model":
        steps = steps.none()
    if choice.show == "errors":
        steps = steps.filter(status__in=WRONG)
    if choice.search:
        calls = calls.alias(text=Cast("reply", TextField())).filter(
            holds(choice.search, "text")
        )
        steps = steps.alias(asked=Cast("tool_input", TextField())).filter(
            holds(choice.search, "tool", "observation", "log", "asked")
        )
        steps = steps.annotate(
            observation_hit=cut_around("observation", choice.search),
            log_hit=cut_around("log", choice.search),
        )
    return Found(calls, steps)


def count_found(run: Run, timeline: Timeline, choice: Choice) -> int:
    """Return how many rows the choice leaves."""
    found = found_in(run, choice)
    last = last_row(run, timeline, choice)
    return found.calls.count() + found.steps.count() + int(last is not None)


def holds(words: str, *columns: str) -> Q:
    """Return the condition that one of the columns holds the words.

    JSON may be stored with its non-ASCII characters escaped, so both are looked for.
    """
    escaped = json.dumps(words)[1:-1]
    wanted = Q()
    for column in columns:
        for text in {words, escaped}:
            wanted |= Q(**{f"{column}__icontains": text})
    return wanted


def cut_around(column: str, words: str) -> Func:
    """Return the column's text from shortly before the words; its beginning without.

    One character more than a line shows tells that there was text before.
    """
    place = StrIndex(Lower(F(column)), Lower(Value(words)))
    return Substr(column, Greatest(place - BEFORE - 1, Value(1)), AROUND)


def counts_of(run: Run) -> Counts:
    """Return how many rows each filter leaves."""
    wrong = AgentStep.objects.filter(run=run, status__in=WRONG).count()
    unanswered = int(has_failed_call(run))
    return Counts(
        run.next_number + int(has_cut_call(run)), run.next_index, wrong + unanswered
    )


def has_failed_call(run: Run) -> bool:
    """Whether a run failed with a model call that got no reply."""
    return run.status != Run.Status.CANCELLED and has_cut_call(run)


def has_cut_call(run: Run) -> bool:
    """Whether a run ended with a model call that got no reply."""
    if not run.is_over:
        return False
    return ModelAttempt.objects.filter(run=run, number=run.next_number).exists()


def next_error(run: Run, after: int) -> int | None:
    """Return the number of the next row that went wrong; the first after the last."""
    wrong: Any = found_in(run, Choice(show="errors")).steps
    numbers = wrong.order_by("index").values_list("row", flat=True)
    following = numbers.filter(row__gt=after).first()
    if following is None and has_failed_call(run) and after < next_number(run):
        following = next_number(run)
    if following is not None:
        return int(following)
    first = numbers.first()
    if first is None and has_failed_call(run):
        return next_number(run)
    return None if first is None else int(first)
