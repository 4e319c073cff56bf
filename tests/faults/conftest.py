"""Fixtures of the tests that break things."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.workers import Workers


@pytest.fixture
def workers(
    tmp_path: Path, redis_url: str, transactional_db: None
) -> Iterator[Workers]:
    """Start workers on the test's database; none outlives the test."""
    found = Workers(tmp_path)
    yield found
    found.end()
