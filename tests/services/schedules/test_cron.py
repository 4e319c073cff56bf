"""Times of a schedule: expressions, zones, changes of the clock."""

from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.services.errors import CronRefused
from runs.services.schedules.cron import (
    MAX_COUNTED_TIMES,
    count_due_times,
    find_next_due_time,
    get_time_zone,
    iter_due_times,
    list_time_zones,
    validate_cron,
)

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = (
    datetime(2026, 3, 28, 12, tzinfo=UTC),
    datetime(2026, 10, 24, 12, tzinfo=UTC),
)
"""The days before the clocks of Berlin go forward and back."""


def local(cron: str, *, after: datetime, number: int) -> list[str]:
    """Return the next times as the clocks of Berlin show them."""
    found = islice(iter_due_times(cron, BERLIN, after=after), number)
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
    found = list(islice(iter_due_times("*/20 * * * *", BERLIN, after=after), 9))

    assert {(b - a).total_seconds() for a, b in pairwise(found)} == {1200.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "five fields, not 0", id="empty"),
        pytest.param("0 9 * *", "five fields, not 4", id="four fields"),
        pytest.param("* * * * * *", "Seconds are not supported", id="seconds"),
        pytest.param("@daily", "five fields, not 1", id="nickname"),
        pytest.param(
            "60 * * * *", 'Minute: "60" is not valid. Enter 0 to 59', id="minute"
        ),
        pytest.param("0 24 * * *", 'Hour: "24" is not valid', id="hour"),
        pytest.param("0 0 0 * *", 'Day of the month: "0" is not valid', id="day"),
        pytest.param("0 0 * FOO *", 'Month: "FOO" is not valid', id="month"),
        pytest.param("0 0 * * 8", 'Day of the week: "8" is not valid', id="weekday"),
        pytest.param("*/0 * * * *", 'Minute: "*/0" is not valid', id="no step"),
        pytest.param("5-1 * * * *", 'Minute: "5-1" is not valid', id="backwards"),
        pytest.param("\0 * * * *", "Minute: ", id="NUL"),
        pytest.param("0 0 30 2 *", "No date matches", id="30 February"),
        pytest.param("0 0 31 4,6 *", "No date matches", id="31 June"),
        pytest.param(
            "0 0 */30 2 MON#5", "No date matches", id="fifth Monday on the first"
        ),
        pytest.param("1," * 5000 + "1 * * * *", "at most 120 characters", id="long"),
    ],
)
def test_what_is_wrong_is_said_with_the_field(text: str, message: str):
    with pytest.raises(CronRefused, match="^") as refused:
        validate_cron(text)

    assert message in str(refused.value)
    assert len(str(refused.value)) < 300


def test_an_expression_is_kept_in_one_way():
    assert validate_cron("  0   9 * *  mon-fri ") == "0 9 * * MON-FRI"


def test_a_leap_day_is_found():
    after = datetime(2026, 11, 21, tzinfo=UTC)

    assert find_next_due_time("0 0 29 2 *", UTC, after=after) == datetime(
        2028, 2, 29, tzinfo=UTC
    )


def test_missed_times_are_counted_up_to_a_limit():
    begin, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    assert count_due_times("0 0 1 1 *", UTC, after=begin, until=end) == 6
    assert (
        count_due_times("* * * * *", UTC, after=begin, until=end) == MAX_COUNTED_TIMES
    )


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "/etc/passwd", "", "utc", "posixrules"]
)
def test_only_zones_of_the_list_are_read(name: str):
    with pytest.raises(KeyError):
        get_time_zone(name)


def test_all_zones_of_the_list_can_be_read():
    assert {
        get_time_zone(name).utcoffset(SPRING) is None for name in list_time_zones()
    } == {False}


FIELD = st.from_regex(r"\A[0-9A-Z*,/#L-]{1,8}\Z")


@given(st.lists(FIELD, min_size=5, max_size=5))
def test_whatever_is_typed_is_refused_or_has_times_in_order(fields: list[str]):
    try:
        cron = validate_cron(" ".join(fields))
    except CronRefused:
        return
    found = list(islice(iter_due_times(cron, BERLIN, after=AUTUMN), 5))

    assert found
    assert all(a < b for a, b in pairwise([AUTUMN, *found]))
