"""Relative times, durations and shares as text."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.translation import override

from runs.templatetags.ui_tags import moment
from runs.ui.format import (
    dollars,
    duration,
    format_relative_time,
    number,
    percent_of,
)

SLACK = timedelta(seconds=0.5)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (timedelta(seconds=20), "in 20 s"),
        (timedelta(minutes=5), "in 5 min"),
        (timedelta(hours=2, minutes=4), "in 2 h 4 min"),
        (timedelta(hours=2), "in 2 h"),
        (timedelta(days=1, hours=3), "in 1 d 3 h"),
        (timedelta(days=1), "in 1 d"),
        (timedelta(days=20, hours=5), "in 20 d"),
        (timedelta(days=70), "in 70 d"),
        (-timedelta(hours=2, minutes=4), "2 h ago"),
        (-timedelta(days=3), "3 d ago"),
    ],
)
def test_relative_times_leave_out_units_that_do_not_matter(ahead, words):
    slack = SLACK if ahead > timedelta() else -SLACK
    assert format_relative_time(timezone.now() + ahead + slack) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.004, "4 ms"),
        (0.0996, "0.1 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (12.5, "13 s"),
        (59.6, "1:00 min"),
        (131.7, "2:12 min"),
        (3599.6, "1 h 0 min"),
        (7000, "1 h 57 min"),
    ],
)
def test_a_duration_is_rounded_before_its_unit_is_chosen(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("style", "ahead", "words"),
    [
        ("past", timedelta(minutes=57), "0 s ago"),
        ("past", -timedelta(minutes=2), "2 min ago"),
        ("due", timedelta(minutes=2), "in 2 min"),
        ("due", -timedelta(minutes=2), "due 2 min ago"),
        ("for", -timedelta(seconds=40), "40 s"),
        ("for", -timedelta(seconds=96), "1:36 min"),
        ("for", -timedelta(hours=3, minutes=12), "3 h 12 min"),
        ("for", -timedelta(days=9, hours=5), "9 d"),
    ],
)
def test_past_times_are_never_ahead_and_late_times_are_due(style, ahead, words):
    slack = SLACK if ahead > timedelta() else -SLACK

    assert f">{words}<" in moment(timezone.now() + ahead + slack, style)


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [(3, 200, "1.5%"), (1, 2, "50.0%"), (0, 9, "0%"), (0, 0, "")],
)
def test_a_share_has_one_decimal_unless_there_is_none(part, whole, words):
    assert percent_of(part, whole) == words


def test_numbers_and_times_follow_the_language():
    with override("de"):
        assert number(26078) == "26.078"
        assert dollars(1234.5) == "$1.234,50"
        assert duration(0.6) == "0,6 s"
    assert number(26078) == "26,078"
