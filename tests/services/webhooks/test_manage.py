"""Pausing, going on, deleting; and what the audit log has of it."""

import pytest

from runs.models import Delivery, Webhook
from runs.services.change_webhook import delete_webhook, switch_webhook
from tests.make import make_delivery, make_webhook
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(noun="webhook", action=action))


def test_a_pause_is_kept_and_told():
    webhook = make_webhook()
    switch_webhook(webhook, is_on=False)

    assert not Webhook.objects.get().is_on
    assert entries("changed")[0].changes == {"is_on": [True, False]}


def test_a_deleted_webhook_takes_its_deliveries_along():
    webhook = make_webhook()
    make_delivery(webhook)
    other = make_delivery()
    delete_webhook(webhook)

    assert list(Delivery.objects.all()) == [other]
    assert entries("deleted")[0].thing == webhook.name


def test_the_log_has_neither_address_nor_secret():
    webhook = make_webhook(url="https://hooks.example/T0/B0/xyz")
    delete_webhook(webhook)

    kept = str(list(AuditEntry.objects.values_list("changes", "thing", "note")))
    assert "hooks.example" in kept
    assert "xyz" not in kept
    assert "whsec_" not in kept
    assert entries("made")[0].changes["sealed_secret"] == ["", "[secret]"]
