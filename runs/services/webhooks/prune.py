"""Prune deliveries: a webhook keeps the newest thousand, of the last 30 days."""

import time
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from runs.models import Delivery

MAX_PER_WEBHOOK = 1_000
"""Deliveries kept for one webhook."""
MAX_AGE_DAYS = 30
BATCH_SIZE = 500
IDLE_PAUSE_SECONDS = 3_600.0
"""Seconds to wait after nothing was pruned."""


@dataclass
class DeliveryPruner:
    """When a worker prunes next."""

    due: float = 0.0

    def prune_if_due(self) -> int:
        """Prune some if it is time; after nothing was pruned, wait an hour."""
        if time.monotonic() < self.due:
            return 0
        gone = prune_deliveries()
        if not gone:
            self.due = time.monotonic() + IDLE_PAUSE_SECONDS
        return gone


def prune_deliveries() -> int:
    """Delete some ended deliveries that are too old or too many; return how many.

    A few of each webhook at a time, so that a sweep stays short.
    """
    over = Delivery.objects.exclude(status=Delivery.Status.WAITING)
    gone = _delete_batch(
        over.filter(created_at__lt=timezone.now() - timedelta(days=MAX_AGE_DAYS))
    )
    numbers = Delivery.objects.order_by().values_list("webhook").annotate(Count("pk"))
    for webhook, _ in numbers.filter(pk__count__gt=MAX_PER_WEBHOOK):
        own = Delivery.objects.filter(webhook=webhook).order_by("-pk")
        last = own.values_list("pk", flat=True)[
            MAX_PER_WEBHOOK : MAX_PER_WEBHOOK + 1
        ].first()
        if last is not None:  # another worker may have been first
            gone += _delete_batch(over.filter(webhook=webhook, pk__lte=last))
    return gone


def _delete_batch(rows: "QuerySet[Delivery]") -> int:
    some = rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]
    return Delivery.objects.filter(pk__in=list(some)).delete()[0]
