"""Buckets of durations, eight for each doubling, and the percentiles they give."""

from collections.abc import Mapping
from math import ceil, log2

SHORTEST_SECONDS = 0.05
"""Where the first bucket ends."""
PER_DOUBLING = 8


def get_duration_bucket(seconds: float) -> int:
    """Return the bucket of a duration; 0 for the shortest ones."""
    if seconds <= SHORTEST_SECONDS:
        return 0
    return ceil(PER_DOUBLING * log2(seconds / SHORTEST_SECONDS))


def get_bucket_seconds(bucket: float) -> float:
    """Return where a bucket ends; a fraction is inside the next one."""
    return float(SHORTEST_SECONDS * 2 ** (bucket / PER_DOUBLING))


def estimate_percentile(counts: Mapping[int, int], part: float) -> float:
    """Return the seconds that `part` of the durations do not pass, within 5%.

    Durations in a bucket count as evenly spread.
    """
    total = sum(counts.values())
    wanted = min(int(total * part), total - 1)
    before = 0
    for bucket in sorted(counts):
        count = counts[bucket]
        if before + count > wanted:
            return get_bucket_seconds(bucket - 1 + (wanted - before + 0.5) / count)
        before += count
    return 0.0
