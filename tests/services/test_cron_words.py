"""Times in words, and as the choices of the form."""

import pytest

from runs.services.cron_words import read_cron, words_of

SAID = {
    "* * * * *": "every minute",
    "*/15 * * * *": "every 15 minutes",
    "0 * * * *": "every hour, on the hour",
    "1 * * * *": "every hour, 1 minute past",
    "20 * * * *": "every hour, 20 minutes past",
    "5 9 * * *": "every day at 09:05",
    "0 18 * * 1-5": "on weekdays at 18:00",
    "0 18 * * 1": "every Monday at 18:00",
    "0 18 * * 0,1,4": "every Monday, Thursday and Sunday at 18:00",
    "0 6 1 * *": "on day 1 of every month at 06:00",
    "0 6 L * *": "on the last day of every month at 06:00",
}


@pytest.mark.parametrize(("cron", "words"), SAID.items())
def test_plain_times_are_said_in_words(cron: str, words: str):
    assert words_of(cron) == words


@pytest.mark.parametrize("cron", SAID)
def test_a_plain_time_is_written_as_it_was_read(cron: str):
    when = read_cron(cron)

    assert when.kind != "cron"
    assert set(read_cron(when.expression()).days) == set(when.days)
    assert words_of(when.expression()) == words_of(cron)


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
def test_what_words_cannot_say_stays_as_it_is(cron: str):
    assert words_of(cron) == cron
    assert read_cron(cron).expression() == cron


def test_names_of_days_are_understood():
    assert words_of("0 9 * * SUN,MON") == "every Monday and Sunday at 09:00"
    assert words_of("0 9 * * 7") == "every Sunday at 09:00"
    assert words_of("0 9 * * MON-FRI") == "on weekdays at 09:00"
