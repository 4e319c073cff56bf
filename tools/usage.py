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
    """Add `calls_30`, `failures_30`, `failure_rate`, and the rows as `recent_usage`.

    The rate is from 0 to 1, and None without calls.
    """

    def total(value: Any) -> Subquery:
        return Subquery(
            _group_recent_usage().filter(tool=OuterRef("pk")).values(n=value)
        )

    rated: QuerySet[Any] = tools.annotate(
        calls_30=Coalesce(total(Sum("calls")), Value(0)),
        failures_30=Coalesce(total(Sum("failures")), Value(0)),
        failure_rate=total(FAILURE_RATE),
    )
    return rated.prefetch_related(
        Prefetch("usage", _filter_recent_usage(), to_attr="recent_usage")
    )


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
    return _filter_recent_usage().order_by().values("tool")


def _filter_recent_usage() -> QuerySet[ToolUsage]:
    return ToolUsage.objects.filter(hour__gte=timezone.now() - USAGE_WINDOW)
