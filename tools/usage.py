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
    """Add `calls_30`, `failures_30`, `failure_rate` and `recent_usage`.

    The rate is 0 to 1, None without calls; the last are the rows themselves.
    """
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
    return rated.prefetch_related(
        Prefetch(
            "usage",
            ToolUsage.objects.filter(hour__gte=timezone.now() - USAGE_WINDOW),
            to_attr="recent_usage",
        )
    )
