"""Times of a schedule: expressions, zones, changes of the clock."""

from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.services.cron import (
    MOST_COUNTED,
    checked_cron,
    count_times,
    next_time,
    times,
    zone_names,
    zone_of,
)
from runs.services.errors import CronRefused

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = (
    datetime(2026, 3, 28, 12, tzinfo=UTC),
    datetime(2026, 10, 24, 12, tzinfo=UTC),
)
"""The days before the clocks of Berlin go forward and back."""


def local(cron: str, *, after: datetime, number: int) -> list[str]:
    """Return the next times as the clocks of Berlin show them."""
    found = islice(times(cron, BERLIN, after=after), number)
    return [f"{at.astimezone(BERLIN):%d %H:%M %z}" for at in found]


def test_nine_o_clock_stays_nine_o_clock_when_the_clocks_change():
    assert local("0 9 * * *", after=SPRING, number=2) == [
        "29 09:00 +0200",
        "30 09:00 +0200",
    ]
    assert local("0 9 * * *", after=AUTUMN, number=2) == [
        "25 09:00 +0100",
        "26 09:00 +0100",
    ]


def test_a_time_that_the_clock_leaves_out_comes_right_after():
    assert local("30 2 * * *", after=SPRING, number=2) == [
        "29 03:00 +0200",
        "30 02:30 +0200",
    ]


def test_a_time_that_comes_twice_is_due_once():
    assert local("30 2 * * *", after=AUTUMN, number=2) == [
        "25 02:30 +0200",
        "26 02:30 +0100",
    ]


def test_a_time_of_the_first_coming_is_over_in_the_second():
    second = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time

    assert local("30 2 * * *", after=second, number=1) == ["26 02:30 +0100"]


def test_pauses_stay_equal_when_an_hour_comes_twice():
    after = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)
    found = list(islice(times("*/20 * * * *", BERLIN, after=after), 9))

    assert {(b - a).total_seconds() for a, b in pairwise(found)} == {1200.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "These are 0", id="empty"),
        pytest.param("0 9 * *", "These are 4", id="four fields"),
        pytest.param("* * * * * *", "There are no seconds", id="seconds"),
        pytest.param("@daily", "These are 1", id="nickname"),
        pytest.param(
            "60 * * * *", "The minute cannot be '60'. Write 0 to 59", id="minute"
        ),
        pytest.param("0 24 * * *", "The hour cannot be '24'", id="hour"),
        pytest.param("0 0 0 * *", "The day of the month cannot be '0'", id="day"),
        pytest.param("0 0 * FOO *", "The month cannot be 'FOO'", id="month"),
        pytest.param("0 0 * * 8", "The day of the week cannot be '8'", id="weekday"),
        pytest.param("*/0 * * * *", "The minute cannot be '*/0'", id="no step"),
        pytest.param("5-1 * * * *", "The minute cannot be '5-1'", id="backwards"),
        pytest.param("\0 * * * *", "The minute cannot be", id="NUL"),
        pytest.param("0 0 30 2 *", "No day fits", id="30 February"),
        pytest.param("0 0 31 4,6 *", "No day fits", id="31 June"),
        pytest.param("0 0 */30 2 MON#5", "No day fits", id="fifth Monday on the first"),
        pytest.param("1," * 5000 + "1 * * * *", "at most 120 characters", id="long"),
    ],
)
def test_what_is_wrong_is_said_with_the_field(text: str, told: str):
    with pytest.raises(CronRefused, match="^") as refused:
        checked_cron(text)

    assert told in str(refused.value)
    assert len(str(refused.value)) < 300


def test_an_expression_is_kept_in_one_way():
    assert checked_cron("  0   9 * *  mon-fri ") == "0 9 * * MON-FRI"


def test_a_leap_day_is_found():
    after = datetime(2026, 11, 21, tzinfo=UTC)

    assert next_time("0 0 29 2 *", UTC, after=after) == datetime(
        2028, 2, 29, tzinfo=UTC
    )


def test_missed_times_are_counted_up_to_a_limit():
    begin, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    assert count_times("0 0 1 1 *", UTC, after=begin, until=end) == 6
    assert count_times("* * * * *", UTC, after=begin, until=end) == MOST_COUNTED


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "/etc/passwd", "", "utc", "posixrules"]
)
def test_only_zones_of_the_list_are_read(name: str):
    with pytest.raises(KeyError):
        zone_of(name)


def test_all_zones_of_the_list_can_be_read():
    assert {zone_of(name).utcoffset(SPRING) is None for name in zone_names()} == {False}


FIELD = st.from_regex(r"\A[0-9A-Z*,/#L-]{1,8}\Z")


@given(st.lists(FIELD, min_size=5, max_size=5))
def test_whatever_is_typed_is_refused_or_has_times_in_order(fields: list[str]):
    try:
        cron = checked_cron(" ".join(fields))
    except CronRefused:
        return
    found = list(islice(times(cron, BERLIN, after=AUTUMN), 5))

    assert found
    assert all(a < b for a, b in pairwise([AUTUMN, *found]))
