"""How long ago, or in how long, as pages say it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.templatetags.look import ago

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
        (-timedelta(hours=2, minutes=4), "2 h ago"),
        (-timedelta(days=3), "3 d ago"),
    ],
)
def test_a_time_is_said_without_what_says_nothing(ahead, words):
    slack = SLACK if ahead > timedelta() else -SLACK
    assert ago(timezone.now() + ahead + slack) == words
