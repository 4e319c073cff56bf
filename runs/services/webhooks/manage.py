"""Pause, resume, test and delete a webhook, and resend its deliveries."""

from django.db import transaction
from django.db.models.functions import Now

from runs import wakeup
from runs.models import Delivery, Webhook
from runs.models.webhooks import TEST_EVENT
from runs.services.webhooks.deliver import build_unclaimed_filter

MAX_RESENT = 500
"""Failed deliveries that are sent again at once."""


def set_webhook_enabled(webhook: Webhook, *, is_on: bool) -> None:
    """Pause or resume it; waiting deliveries are sent after a pause."""
    webhook.is_on = is_on
    webhook.save(update_fields=["is_on"])


def delete_webhook(webhook: Webhook) -> None:
    """Delete it with its deliveries.

    Its row is locked first: a run that ends at this moment waits, and then sends
    nothing to the webhook.
    """
    with transaction.atomic():
        Webhook.objects.select_for_update().filter(pk=webhook.pk).first()
        Delivery.objects.filter(webhook=webhook).delete()
        webhook.delete()


def send_test_delivery(webhook: Webhook) -> Delivery:
    """Enqueue a test event, which has no run."""
    with transaction.atomic():
        made = Delivery.objects.create(
            webhook=webhook,
            event=TEST_EVENT,
            available_at=Now(),
            enqueued_at=Now(),
            created_at=Now(),
        )
        wakeup.enqueue_delivery(made.pk)
    return made


def resend_delivery(delivery: Delivery) -> bool:
    """Restart a delivery under the same id; False while an attempt is in progress."""
    rows = Delivery.objects.filter(build_unclaimed_filter(), pk=delivery.pk)
    with transaction.atomic():
        begun = rows.update(
            status=Delivery.Status.WAITING,
            attempts=0,
            available_at=Now(),
            lease_until=None,
            enqueued_at=Now(),
            ended_at=None,
        )
        if begun:
            wakeup.enqueue_delivery(delivery.pk)
    return bool(begun)


def resend_failed_deliveries(webhook: Webhook) -> int:
    """Restart the newest failed deliveries, oldest first; return how many."""
    failed = webhook.deliveries.filter(status=Delivery.Status.FAILED)
    newest = list(failed.order_by("-pk")[:MAX_RESENT])
    return sum(resend_delivery(delivery) for delivery in reversed(newest))
