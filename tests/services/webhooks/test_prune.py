"""Forgetting deliveries."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from runs.models import Delivery
from runs.services.webhooks import prune as pruning
from runs.services.webhooks.prune import (
    IDLE_PAUSE_SECONDS,
    DeliveryPruner,
    prune_deliveries,
)
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
    monkeypatch.setattr(pruning, "MAX_PER_WEBHOOK", 2)
    webhook = make_webhook()
    rows = [make_delivery(webhook, status="delivered") for _ in range(4)]

    assert prune_deliveries() == 2
    assert list(Delivery.objects.order_by("pk")) == rows[2:]
    assert prune_deliveries() == 0


def test_a_sweep_deletes_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(pruning, "BATCH_SIZE", 1)
    for _ in range(2):
        make_delivery(status="delivered", created_at=OLD)

    assert [prune_deliveries() for _ in range(3)] == [1, 1, 0]


def test_every_webhook_is_looked_at(monkeypatch):
    monkeypatch.setattr(pruning, "MAX_PER_WEBHOOK", 1)
    for webhook in (make_webhook(), make_webhook()):
        for _ in range(2):
            make_delivery(webhook, status="failed")

    assert prune_deliveries() == 2


def test_a_webhook_keeps_what_waits_however_much(monkeypatch):
    monkeypatch.setattr(pruning, "MAX_PER_WEBHOOK", 1)
    webhook = make_webhook()
    for _ in range(3):
        make_delivery(webhook)

    assert prune_deliveries() == 0


def test_goes_on_at_once_while_something_is_left(monkeypatch):
    monkeypatch.setattr(pruning, "BATCH_SIZE", 1)
    for _ in range(2):
        make_delivery(status="delivered", created_at=OLD)
    worker = DeliveryPruner()

    assert [worker.prune_if_due() for _ in range(3)] == [1, 1, 0]


def test_asks_nothing_for_an_hour_after_nothing_was_found(
    monkeypatch, django_assert_num_queries
):
    now = 50_000.0
    monkeypatch.setattr(pruning, "time", SimpleNamespace(monotonic=lambda: now))
    worker = DeliveryPruner()
    worker.prune_if_due()
    make_delivery(status="delivered", created_at=OLD)

    now += IDLE_PAUSE_SECONDS - 1
    with django_assert_num_queries(0):
        assert worker.prune_if_due() == 0
    now += 1
    assert worker.prune_if_due() == 1
