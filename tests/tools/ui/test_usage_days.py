"""The calls of a tool by day."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from tools.models import ToolUsage
from tools.ui.sparkline import sum_usage_by_day


@pytest.mark.parametrize(
    ("zone", "day"), [("UTC", -2), ("Asia/Tokyo", -1), ("America/New_York", -1)]
)
def test_days_are_those_of_the_viewer(zone, day):
    row = ToolUsage(hour=datetime(2026, 11, 20, 16, tzinfo=UTC), calls=3, failures=1)
    now = datetime(2026, 11, 21, 2, tzinfo=UTC)

    with timezone.override(zone):
        days = sum_usage_by_day([row], now=now)

    assert [place - len(days) for place, one in enumerate(days) if one.calls] == [day]
