"""Sending by hand: a test, or once more what was sent before."""

from django.db import transaction
from django.db.models.functions import Now

from runs import bell
from runs.models import Delivery, Webhook
from runs.models.webhooks import TEST
from runs.services.deliver import is_free


def send_test(webhook: Webhook) -> Delivery:
    """Put a test on its way, which tells of no run."""
    with transaction.atomic():
        made = Delivery.objects.create(
            webhook=webhook,
            event=TEST,
            not_before=Now(),
            rung_at=Now(),
            created_at=Now(),
        )
        bell.ring_delivery(made.pk)
    return made


def send_again(delivery: Delivery) -> bool:
    """Begin a delivery anew, under the same id; False while an attempt is under way."""
    rows = Delivery.objects.filter(is_free(), pk=delivery.pk)
    with transaction.atomic():
        begun = rows.update(
            status=Delivery.Status.WAITING,
            attempts=0,
            not_before=Now(),
            taken_until=None,
            rung_at=Now(),
            ended_at=None,
        )
        if begun:
            bell.ring_delivery(delivery.pk)
    return bool(begun)
