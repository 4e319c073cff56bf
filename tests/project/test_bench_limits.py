"""The bench of time limits names tests that exist."""

from pathlib import Path

import pytest

from tests.bench.bench_limits import LIMITS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("test", LIMITS)
def test_a_limit_names_a_test(test):
    path, _, name = test.partition("::")

    assert f"def {name}(" in (ROOT / path).read_text()
