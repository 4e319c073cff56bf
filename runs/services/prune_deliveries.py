"""Forgetting deliveries: a webhook keeps the newest thousand, of the last 30 days."""

import time
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from runs.models import Delivery

KEPT = 1_000
"""Of one webhook."""
DAYS = 30
AT_ONCE = 500
PAUSE = 3_600.0
"""Seconds, after nothing was found to forget."""


@dataclass
class Pruning:
    """When a worker looks again."""

    due: float = 0.0

    def go_on(self) -> int:
        """Forget some where it is time; after nothing was found, an hour is waited."""
        if time.monotonic() < self.due:
            return 0
        gone = prune_deliveries()
        if not gone:
            self.due = time.monotonic() + PAUSE
        return gone


def prune_deliveries() -> int:
    """Delete some that are over and too old or too many; return how many.

    Of each webhook a few at a time, so that a sweep stays short.
    """
    over = Delivery.objects.exclude(status=Delivery.Status.WAITING)
    gone = _delete(over.filter(created_at__lt=timezone.now() - timedelta(days=DAYS)))
    numbers = Delivery.objects.order_by().values_list("webhook").annotate(Count("pk"))
    for webhook, _ in numbers.filter(pk__count__gt=KEPT):
        own = Delivery.objects.filter(webhook=webhook).order_by("-pk")
        last = own.values_list("pk", flat=True)[KEPT : KEPT + 1].first()
        if last is not None:  # another worker may have been here first
            gone += _delete(over.filter(webhook=webhook, pk__lte=last))
    return gone


def _delete(rows: "QuerySet[Delivery]") -> int:
    some = rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]
    return Delivery.objects.filter(pk__in=list(some)).delete()[0]
