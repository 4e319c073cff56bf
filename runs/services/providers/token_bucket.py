"""Token buckets that all workers share, in Redis; each worker's own without it.

A bucket is full at some moment in the future, or already is. Taking from it moves that
moment on. So one number per bucket says how much is missing, and who takes more than
there is learns how long to wait: their turn is reserved.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import redis

from runs.redis_streams import connect_redis

logger = logging.getLogger(__name__)

BURST_SHARE = 0.1
"""How much of a minute's limit may be used at once; the rest flows in over the minute.

So that no 60 seconds see more than the limit. Limits below 10 have a burst of 1.
"""
MIN_LIMIT_FOR_SHARES = 10
AWAY_SECONDS = 5.0
"""How long a Redis that did not respond is left alone."""

TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local waits = {}
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  local amount = tonumber(ARGV[3 * i])
  local full_at = math.max(tonumber(redis.call('GET', key) or now), now)
  local missing = (full_at - now) * rate
  waits[i] = tostring(math.max(0, (missing + math.min(amount, burst) - burst) / rate))
  full_at = math.max(full_at + amount / rate, now)
  local seconds = math.ceil(full_at - now) + 60
  redis.call('SET', key, string.format('%.6f', full_at), 'EX', seconds)
end
return waits
"""


class BucketUse(NamedTuple):
    """How much is taken from which bucket; a negative amount is given back."""

    key: str
    per_minute: int
    amount: float

    @property
    def burst(self) -> float:
        if self.per_minute < MIN_LIMIT_FOR_SHARES:
            return 1.0
        return self.per_minute * BURST_SHARE

    @property
    def rate(self) -> float:
        """How much flows in per second."""
        if self.per_minute < MIN_LIMIT_FOR_SHARES:
            return self.per_minute / 60
        return (self.per_minute - self.burst) / 60


class SharedBuckets:
    """The buckets of the site, or of this process while Redis is away."""

    def __init__(self, count_workers: Callable[[], int]) -> None:
        self.count_workers = count_workers
        """Called without Redis: each worker then takes its share of a limit."""
        self.lock = threading.Lock()
        self.full_at = dict[str, float]()
        self.away_until = 0.0

    def take(self, uses: list[BucketUse]) -> list[float]:
        """Return the seconds to wait for each of the uses; all are taken."""
        if time.monotonic() >= self.away_until:
            try:
                return take_from_redis(uses)
            except (redis.RedisError, OSError) as error:
                logger.warning("rates are limited per worker, without Redis: %s", error)
                self.away_until = time.monotonic() + AWAY_SECONDS
        share = max(self.count_workers(), 1)
        now = time.monotonic()
        with self.lock:
            return [self._take_own(use, share=share, now=now) for use in uses]

    def _take_own(self, use: BucketUse, *, share: int, now: float) -> float:
        rate, burst = use.rate / share, use.burst
        full_at = max(self.full_at.get(use.key, now), now)
        missing = (full_at - now) * rate
        self.full_at[use.key] = max(full_at + use.amount / rate, now)
        return max(0.0, (missing + min(use.amount, burst) - burst) / rate)


def take_from_redis(uses: list[BucketUse]) -> list[float]:
    """Take in one step, by the clock of Redis; raise what its client raises."""
    numbers = [value for use in uses for value in (use.rate, use.burst, use.amount)]
    found = _find_script()(keys=[use.key for use in uses], args=numbers)
    return [float(wait) for wait in found]


@cache
def _find_script() -> Callable[..., list[bytes]]:
    script: Callable[..., list[bytes]] = connect_redis().register_script(TAKE)
    return script
