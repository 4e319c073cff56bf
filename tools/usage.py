"""How tools were used in the last 30 days, as part of a query."""

from datetime import timedelta
from typing import Any

from django.db.models import (
    F,
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


def with_usage(tools: QuerySet[Any]) -> QuerySet[Any]:
    """Add what `with_usage_totals` does, and the rows themselves as `recent_usage`."""
    recent = ToolUsage.objects.filter(hour__gte=timezone.now() - USAGE_WINDOW)
    return with_usage_totals(tools).prefetch_related(
        Prefetch("usage", recent, to_attr="recent_usage")
    )


def with_usage_totals(tools: QuerySet[Any]) -> QuerySet[Any]:
    """Add `calls_30`, `failures_30` and `failure_rate`: 0 to 1, None without calls."""
    recent = ToolUsage.objects.filter(
        tool=OuterRef("pk"), hour__gte=timezone.now() - USAGE_WINDOW
    ).order_by()

    def total(column: str) -> Any:
        sums = recent.values("tool").annotate(n=Sum(column)).values("n")
        return Coalesce(Subquery(sums), Value(0))

    counted: QuerySet[Any] = tools.annotate(
        calls_30=total("calls"), failures_30=total("failures")
    )
    rated: QuerySet[Any] = counted.annotate(
        failure_rate=Cast(F("failures_30"), FloatField())
        / NullIf(Cast(F("calls_30"), FloatField()), Value(0.0))
    )
    return rated
