"""Forgetting deliveries: a webhook keeps the newest thousand, of the last 30 days."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from runs.models import Delivery, Webhook

KEPT = 1_000
"""Of one webhook."""
DAYS = 30
AT_ONCE = 500


def prune_deliveries() -> int:
    """Delete some that are over and too old or too many; return how many.

    Of too many it looks at one webhook, drawn by lot, so that a sweep stays short.
    """
    over = Delivery.objects.exclude(status=Delivery.Status.WAITING)
    gone = _delete(over.filter(created_at__lt=timezone.now() - timedelta(days=DAYS)))
    webhook = Webhook.objects.order_by("?").values_list("pk", flat=True).first()
    own = Delivery.objects.filter(webhook=webhook).order_by("-pk")
    last = own.values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if last is not None:
        gone += _delete(over.filter(webhook=webhook, pk__lte=last))
    return gone


def _delete(rows: "QuerySet[Delivery]") -> int:
    some = rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]
    return Delivery.objects.filter(pk__in=list(some)).delete()[0]
