"""Limits per minute of providers in tests: full buckets, of this process alone."""

import math

from runs.services.evaluation import ask_judge
from runs.services.providers import rate
from runs.services.providers.token_bucket import SharedBuckets


def use_fresh_rates(monkeypatch) -> None:
    """Replace the buckets, and the turns that judges of earlier tests have reserved."""
    buckets = SharedBuckets(lambda: 1)
    buckets.away_until = math.inf
    monkeypatch.setattr(rate, "buckets", buckets)
    monkeypatch.setattr(ask_judge, "reserved_turns", ask_judge.ReservedTurns())
