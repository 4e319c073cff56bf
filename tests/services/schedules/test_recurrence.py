"""Cron expressions described in words, and as the choices of the form."""

import pytest
from django.utils import translation

from runs.services.schedules.recurrence import describe_cron, parse_cron

DESCRIPTIONS = {
    "* * * * *": "Every minute",
    "*/15 * * * *": "Every 15 minutes",
    "0 * * * *": "Every hour, on the hour",
    "1 * * * *": "Every hour, 1 minute past the hour",
    "20 * * * *": "Every hour, 20 minutes past the hour",
    "5 9 * * *": "Every day at 09:05",
    "0 18 * * 1-5": "Monday to Friday at 18:00",
    "0 18 * * 1": "Every Monday at 18:00",
    "0 18 * * 0,1,4": "Every Monday, Thursday and Sunday at 18:00",
    "0 6 1 * *": "On day 1 of every month at 06:00",
    "0 6 L * *": "On the last day of every month at 06:00",
}


@pytest.mark.parametrize(("cron", "words"), DESCRIPTIONS.items())
def test_simple_times_are_described_in_words(cron: str, words: str):
    assert describe_cron(cron) == words


@pytest.mark.parametrize("cron", DESCRIPTIONS)
def test_simple_times_round_trip(cron: str):
    when = parse_cron(cron)

    assert when.kind != "cron"
    assert set(parse_cron(when.to_cron()).days) == set(when.days)
    assert describe_cron(when.to_cron()) == describe_cron(cron)


@pytest.mark.parametrize(
    "cron",
    [
        "*/7 * * * *",
        "0 9 31 * *",
        "0 9 1 1 *",
        "0 9 1 * 1",
        "0 9-17 * * *",
        "0 9 * * 1#1",
    ],
)
def test_complex_expressions_are_shown_unchanged(cron: str):
    assert describe_cron(cron) == cron
    assert parse_cron(cron).to_cron() == cron


def test_names_of_weekdays_are_parsed():
    assert describe_cron("0 9 * * SUN,MON") == "Every Monday and Sunday at 09:00"
    assert describe_cron("0 9 * * 7") == "Every Sunday at 09:00"
    assert describe_cron("0 9 * * MON-FRI") == "Monday to Friday at 09:00"


def test_descriptions_follow_the_language():
    with translation.override("zh-hans"):
        assert "星期一" in describe_cron("0 9 * * 1")
