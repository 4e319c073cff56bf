"""Writing how tools were used, in batches."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from tools.models import Tool, ToolUsage


class UsedCall(Protocol):
    """One call of a tool, as the worker noted it."""

    @property
    def tool_id(self) -> int: ...

    @property
    def failed(self) -> bool:
        """Whether the call did not work."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def error(self) -> str:
        """The sentence of a failed call."""


@dataclass
class UsageTotal:
    """All calls of one tool in a batch."""

    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    error: str = ""


def record_usage(uses: Iterable[UsedCall], *, at: datetime | None = None) -> None:
    """Add `uses` to the hour of `at` (now), whatever became of their tools since."""
    at = at or timezone.now()
    sums = sum_usage_by_tool(uses)
    if not sums:
        return
    hour = at.replace(minute=0, second=0, microsecond=0)
    with transaction.atomic():
        known = set(Tool.objects.filter(pk__in=sums).values_list("pk", flat=True))
        for tool_id in sorted(known):  # one order, so that two workers do not deadlock
            add_hourly_usage(tool_id, sums[tool_id], hour=hour)
            update_last_use(tool_id, sums[tool_id], at=at)


def sum_usage_by_tool(uses: Iterable[UsedCall]) -> dict[int, UsageTotal]:
    sums: dict[int, UsageTotal] = defaultdict(UsageTotal)
    for use in uses:
        one = sums[use.tool_id]
        one.calls += 1
        one.failures += use.failed
        one.seconds += use.seconds
        one.error = use.error if use.failed else one.error
    return sums


def add_hourly_usage(tool_id: int, one: UsageTotal, *, hour: datetime) -> None:
    """Raise the row of the hour, which another worker may have made just now."""
    ToolUsage.objects.bulk_create(
        [ToolUsage(tool_id=tool_id, hour=hour)], ignore_conflicts=True
    )
    ToolUsage.objects.filter(tool_id=tool_id, hour=hour).update(
        calls=F("calls") + one.calls,
        failures=F("failures") + one.failures,
        ms=F("ms") + round(one.seconds * 1000),
    )


def update_last_use(tool_id: int, one: UsageTotal, *, at: datetime) -> None:
    """Keep when the tool was used last, and its last error."""
    changes: dict[str, object] = {"last_used_at": at}
    if one.error:
        changes["last_error"] = one.error[:2000]
    Tool.objects.filter(pk=tool_id).update(**changes)
