"""Fixtures of the tests that break things."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.faults.workers import Workers


@pytest.fixture
def workers(
    tmp_path: Path, redis_url: str, transactional_db: None
) -> Iterator[Workers]:
    """Start workers on the test's database; none outlives the test.

    They begin with an empty broker: runs of earlier tests had the same numbers.
    """
    with redis.Redis.from_url(redis_url) as broker:
        broker.flushdb()
    found = Workers(tmp_path)
    yield found
    found.end()
