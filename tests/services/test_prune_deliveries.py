"""Forgetting deliveries."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Delivery
from runs.services import prune_deliveries as pruning
from runs.services.prune_deliveries import prune_deliveries
from tests.make import make_delivery, make_webhook

pytestmark = pytest.mark.django_db

OLD = timezone.now() - timedelta(days=31)


def test_what_is_old_and_over_goes():
    make_delivery(status="delivered", created_at=OLD)
    waits = make_delivery(created_at=OLD)
    young = make_delivery(status="failed")

    assert prune_deliveries() == 1
    assert set(Delivery.objects.all()) == {waits, young}


def test_a_webhook_keeps_its_newest(monkeypatch):
    monkeypatch.setattr(pruning, "KEPT", 2)
    webhook = make_webhook()
    rows = [make_delivery(webhook, status="delivered") for _ in range(4)]

    assert prune_deliveries() == 2
    assert list(Delivery.objects.order_by("pk")) == rows[2:]
    assert prune_deliveries() == 0


def test_a_sweep_deletes_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(pruning, "AT_ONCE", 1)
    for _ in range(2):
        make_delivery(status="delivered", created_at=OLD)

    assert [prune_deliveries() for _ in range(3)] == [1, 1, 0]
