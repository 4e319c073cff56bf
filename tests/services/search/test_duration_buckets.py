"""Percentiles of durations that are only counted by bucket."""

import random
from collections import Counter

import pytest

from runs.services.search.duration_buckets import (
    SHORTEST_SECONDS,
    estimate_percentile,
    get_bucket_seconds,
    get_duration_bucket,
)


@pytest.mark.parametrize("seconds", [0.0500001, 0.3, 1, 7.77, 3600, 400_000])
def test_a_duration_is_in_its_bucket(seconds):
    bucket = get_duration_bucket(seconds)

    assert get_bucket_seconds(bucket - 1) < seconds <= get_bucket_seconds(bucket)


def test_the_shortest_durations_share_a_bucket():
    assert {get_duration_bucket(s) for s in (0, 0.001, SHORTEST_SECONDS)} == {0}


@pytest.mark.parametrize("part", [0.5, 0.95])
@pytest.mark.parametrize("runs", [1, 2, 30, 5000])
def test_a_percentile_is_right_within_five_percent(runs, part):
    dice = random.Random(runs)
    seconds = sorted(dice.lognormvariate(2, 1.5) for _ in range(runs))
    exact = seconds[min(runs - 1, int(runs * part))]

    found = estimate_percentile(Counter(map(get_duration_bucket, seconds)), part)

    assert found == pytest.approx(exact, rel=0.05)


def test_without_durations_there_is_no_percentile():
    assert estimate_percentile({}, 0.5) == 0
