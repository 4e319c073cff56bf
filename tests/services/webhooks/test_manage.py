"""Webhooks managed by hand: paused, tested and deleted; deliveries resent."""

import pytest

from runs.models import Delivery, Webhook
from runs.services.webhooks.deliver import claim_delivery, record_attempt
from runs.services.webhooks.manage import (
    delete_webhook,
    resend_delivery,
    send_test_delivery,
    set_webhook_enabled,
)
from runs.services.webhooks.post import PostResult
from tests.make import make_delivery, make_webhook
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def enqueued(monkeypatch, django_capture_on_commit_callbacks):
    """Collect the ids of enqueued deliveries; send no task."""
    found = []
    monkeypatch.setattr("runs.wakeup.enqueue_delivery", found.append)
    return found


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(noun="webhook", action=action))


def test_a_pause_is_saved_and_logged():
    webhook = make_webhook()
    set_webhook_enabled(webhook, is_on=False)

    assert not Webhook.objects.get().is_on
    assert entries("changed")[0].changes == {"is_on": [True, False]}


def test_a_deleted_webhook_takes_its_deliveries_along():
    webhook = make_webhook()
    make_delivery(webhook)
    other = make_delivery()
    delete_webhook(webhook)

    assert list(Delivery.objects.all()) == [other]
    assert entries("deleted")[0].thing == webhook.name


def test_the_audit_log_has_neither_url_path_nor_secret():
    webhook = make_webhook(url="https://hooks.example/T0/B0/xyz")
    delete_webhook(webhook)

    kept = str(list(AuditEntry.objects.values_list("changes", "thing", "note")))
    assert "hooks.example" in kept
    assert "xyz" not in kept
    assert "whsec_" not in kept
    assert entries("made")[0].changes["sealed_secret"] == ["", "[secret]"]


def test_a_test_delivery_is_due_at_once(enqueued):
    made = send_test_delivery(make_webhook())

    assert (made.event, made.run, enqueued) == ("test", None, [made.pk])
    assert claim_delivery(made.pk) is not None


@pytest.mark.parametrize("status", ["delivered", "failed", "waiting"])
def test_resends_a_delivery_from_its_first_attempt(enqueued, status):
    delivery = make_delivery(status=status, attempts=7)

    assert resend_delivery(delivery)
    assert enqueued == [delivery.pk]
    assert claim_delivery(delivery.pk).attempts == 1


def test_does_not_resend_a_delivery_under_way(enqueued):
    delivery = make_delivery()
    taken = claim_delivery(delivery.pk)

    assert not resend_delivery(delivery)
    assert enqueued == []
    record_attempt(taken, PostResult(0.1, 200))
    assert Delivery.objects.get().status == "delivered"
