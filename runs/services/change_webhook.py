"""Pausing a webhook, letting it go on, and deleting it."""

from django.db import transaction

from runs.models import Delivery, Webhook


def switch_webhook(webhook: Webhook, *, is_on: bool) -> None:
    """Pause it or let it go on; what waits is sent after a pause."""
    webhook.is_on = is_on
    webhook.save(update_fields=["is_on"])


def delete_webhook(webhook: Webhook) -> None:
    """Delete it with its deliveries.

    Its row is locked first: a run that ends at this moment waits for it, and tells the
    webhook nothing.
    """
    with transaction.atomic():
        Webhook.objects.select_for_update().filter(pk=webhook.pk).first()
        Delivery.objects.filter(webhook=webhook).delete()
        webhook.delete()
