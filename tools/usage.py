"""How tools were used in the last 30 days, as part of a query."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import (
    FloatField,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Cast, Coalesce, NullIf
from django.utils import timezone

from tools.models import ToolUsage

USAGE_WINDOW = timedelta(days=30)
FAILURE_RATE = Cast(Sum("failures"), FloatField()) / NullIf(
    Cast(Sum("calls"), FloatField()), Value(0.0)
)


def with_usage(tools: QuerySet[Any]) -> QuerySet[Any]:
    """Add what `with_usage_totals` does, and the rows themselves as `recent_usage`."""
    recent = ToolUsage.objects.filter(hour__gte=timezone.now() - USAGE_WINDOW)
    return with_usage_totals(tools).prefetch_related(
        Prefetch("usage", recent, to_attr="recent_usage")
    )


def with_usage_totals(tools: QuerySet[Any]) -> QuerySet[Any]:
    """Add `calls_30`, `failures_30` and `failure_rate`: 0 to 1, None without calls."""

    def total(value: Any) -> Subquery:
        return Subquery(
            _group_recent_usage().filter(tool=OuterRef("pk")).values(n=value)
        )

    rated: QuerySet[Any] = tools.annotate(
        calls_30=Coalesce(total(Sum("calls")), Value(0)),
        failures_30=Coalesce(total(Sum("failures")), Value(0)),
        failure_rate=total(FAILURE_RATE),
    )
    return rated


class UsageTotals(NamedTuple):
    """The calls of a tool, and how many of them failed."""

    calls: int = 0
    failures: int = 0

    @property
    def failure_rate(self) -> float | None:
        """From 0 to 1; None without calls."""
        return self.failures / self.calls if self.calls else None


def load_usage_totals(tools: Collection[int] | None = None) -> dict[int, UsageTotals]:
    """Return the totals of tools with calls, or of all, by key: rows are read once."""
    recent = _group_recent_usage()
    if tools is not None:
        recent = recent.filter(tool__in=tools)
    rows = recent.values_list("tool", Sum("calls"), Sum("failures"))
    return {tool: UsageTotals(calls, failures) for tool, calls, failures in rows}


def filter_by_failure_rate(tools: QuerySet[Any], least: float) -> QuerySet[Any]:
    """Return the tools of whose calls at least this share failed: 0 to 1."""
    failing = _group_recent_usage().annotate(rate=FAILURE_RATE).filter(rate__gte=least)
    return tools.filter(pk__in=failing.values("tool"))


def _group_recent_usage() -> QuerySet[Any]:
    recent = ToolUsage.objects.filter(hour__gte=timezone.now() - USAGE_WINDOW)
    return recent.order_by().values("tool")
