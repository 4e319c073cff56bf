"""When the runs of the list started, as bars that lead to the runs of their time."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.services.search.run_sample import RunSample, StartGroup, group_starts
from runs.ui.format import format_clock, format_day, format_weekday, number
from runs.views.run_list.filters import (
    SINCE_PERIODS,
    RunFilters,
    parse_end,
    parse_time,
)

MAX_BARS = 60
MIN_MINUTES = 30
"""The shortest time that is drawn."""
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
STEPS = (
    *(MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
    *(DAY, 7 * DAY, 28 * DAY, 91 * DAY, 364 * DAY),
)
"""Lengths of a bar."""
GAP = 0.22
"""Part of a bar's width that stays empty."""
LABELS = 5
SHORTEST_BAR = 3.0
"""Percent of the height, so that a single run can be seen."""


class HistogramBar(NamedTuple):
    """One length of time; places are percentages."""

    x: str
    width: str
    y: str
    height: str
    failed_y: str
    failed_height: str
    words: str
    begin: str
    """The filters that show its runs."""
    end: str
    url: str


class RunHistogram(NamedTuple):
    """The bars, and what stands below them."""

    bars: list[HistogramBar]
    labels: list[str]
    words: str


def build_run_histogram(sample: RunSample, filters: RunFilters) -> RunHistogram | None:
    """Return when the sampled runs started; None without any."""
    if not sample.ids:
        return None
    begin, end = find_bounds(sample, filters)
    step = next((one for one in STEPS if (end - begin) / one <= MAX_BARS), STEPS[-1])
    marks = list_marks(begin, end, step)
    unit = "minute" if step < HOUR else "hour" if step < DAY else "day"
    counts = count_by_mark(group_starts(sample, unit), marks)
    highest = max(total for total, _failed in counts) or 1
    bars = [
        build_bar(place, marks, counts[place], highest, filters)
        for place in range(len(marks) - 1)
    ]
    text = ngettext(
        "Runs by time of their start, failed ones in red. At most %(count)s run.",
        "Runs by time of their start, failed ones in red. At most %(count)s runs.",
        highest,
    )
    return RunHistogram(
        bars, list_labels(marks, step), text % {"count": number(highest)}
    )


def find_bounds(sample: RunSample, filters: RunFilters) -> tuple[datetime, datetime]:
    """Return the time to draw: that of the filters, but nothing before the sample."""
    now = timezone.now()
    end = min(parse_end(filters.end) or now, now) if filters.end else now
    asked = [parse_time(filters.begin)] if filters.begin else []
    asked += [now - SINCE_PERIODS[filters.since]] if filters.since else []
    begins = [one for one in asked if one is not None]
    oldest = sample.oldest or end
    begin = max(begins) if begins and sample.is_whole else oldest
    begin = min(begin, oldest, end - MIN_MINUTES * MINUTE if not begins else begin)
    zone = timezone.get_current_timezone()
    return begin.astimezone(zone), max(end, begin + MINUTE).astimezone(zone)


def list_marks(begin: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """Return where each bar begins and where the last one ends, by the local clock."""
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    mark = midnight if step >= DAY else midnight + (begin - midnight) // step * step
    marks = [mark]
    while mark < end:
        mark += step
        marks.append(mark)
    return marks


def count_by_mark(
    groups: Iterable[StartGroup], marks: list[datetime]
) -> list[tuple[int, int]]:
    """Return the runs of each bar, and how many of them failed."""
    counts = [(0, 0)] * (len(marks) - 1)
    for group in groups:
        passed = sum(mark <= group.at for mark in marks)
        place = min(max(passed - 1, 0), len(counts) - 1)
        total, failed = counts[place]
        more = group.runs if group.status == "failed" else 0
        counts[place] = (total + group.runs, failed + more)
    return counts


def build_bar(
    place: int,
    marks: list[datetime],
    counts: tuple[int, int],
    highest: int,
    filters: RunFilters,
) -> HistogramBar:
    total, failed = counts
    wide = 100 / (len(marks) - 1)
    height = max(100 * total / highest, SHORTEST_BAR) if total else 0.0
    red = max(100 * failed / highest, SHORTEST_BAR) if failed else 0.0
    begin, end = format_bounds(marks[place], marks[place + 1])
    return HistogramBar(
        x=f"{wide * place:.2f}%",
        width=f"{wide * (1 - GAP):.2f}%",
        y=f"{100 - height:.1f}%",
        height=f"{height:.1f}%",
        failed_y=f"{100 - red:.1f}%",
        failed_height=f"{red:.1f}%",
        words=describe_histogram_bar(marks[place], total, failed),
        begin=begin,
        end=end,
        url=replace(filters, since="", begin=begin, end=end).build_query(),
    )


def describe_histogram_bar(mark: datetime, total: int, failed: int) -> str:
    """Say how many runs started then, and how many of them failed."""
    text = (
        ngettext(
            "%(time)s: %(count)s run, %(failed)s failed",
            "%(time)s: %(count)s runs, %(failed)s failed",
            total,
        )
        if failed
        else ngettext("%(time)s: %(count)s run", "%(time)s: %(count)s runs", total)
    )
    return text % {
        "time": describe_mark(mark),
        "count": number(total),
        "failed": number(failed),
    }


def format_bounds(begin: datetime, end: datetime) -> tuple[str, str]:
    """Write a length of time as filters; whole days as days, the last one included."""
    if begin.hour == begin.minute == end.hour == end.minute == 0:
        return begin.date().isoformat(), (end - DAY).date().isoformat()
    return f"{begin:%Y-%m-%dT%H:%M}", f"{end:%Y-%m-%dT%H:%M}"


def describe_mark(mark: datetime) -> str:
    day = format_day(mark.date())
    is_midnight = mark.hour == mark.minute == 0
    return day if is_midnight else f"{day} {format_clock(mark)}"


def list_labels(marks: list[datetime], step: timedelta) -> list[str]:
    """Return what stands below the bars, evenly spread."""
    places = [
        round(part * (len(marks) - 1) / (LABELS - 1)) for part in range(LABELS - 1)
    ]
    is_near_now = marks[-1] >= timezone.now()
    labels = [format_label(marks[place], marks, step) for place in places]
    last = _("now") if is_near_now else format_label(marks[-1], marks, step)
    return [*labels, last]


def format_label(mark: datetime, marks: list[datetime], step: timedelta) -> str:
    """Write a mark as short as the others allow."""
    if step >= DAY:
        return format_day(mark.date())
    if marks[-1] - marks[0] <= DAY:
        return format_clock(mark)
    return f"{format_weekday(mark.date())} {format_clock(mark)}"
