"""Signatures of what webhooks are sent."""

import base64
import hashlib
import hmac
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Webhook
from runs.services.webhooks.sign import (
    build_signature_headers,
    generate_webhook_secret,
    get_current_secrets,
    rotate_webhook_secret,
)
from tests.make import make_webhook
from tools.audit.entry import AuditEntry


def test_signs_as_the_example_of_standard_webhooks():
    headers = build_signature_headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_secret_is_long_and_new_each_time():
    first, second = generate_webhook_secret(), generate_webhook_secret()

    assert len(base64.b64decode(first.removeprefix("whsec_"))) == 32
    assert first != second


@pytest.mark.django_db
def test_after_a_rotation_both_secrets_sign_for_a_day():
    webhook = make_webhook()
    old = get_current_secrets(webhook)[0]
    new = rotate_webhook_secret(webhook)
    webhook.refresh_from_db()

    assert get_current_secrets(webhook) == [new, old]
    sent = build_signature_headers(
        get_current_secrets(webhook), id="m", timestamp=1, body=b"{}"
    )
    assert sent["webhook-signature"].split() == [
        own(key, b"m.1.{}") for key in (new, old)
    ]


def own(secret: str, message: bytes) -> str:
    """Return a signature by other code than ours."""
    key = base64.b64decode(secret[len("whsec_") :])
    digest = hmac.digest(key, message, hashlib.sha256)
    return "v1," + base64.standard_b64encode(digest).decode()


@pytest.mark.django_db
def test_after_a_day_only_the_new_secret_signs():
    webhook = make_webhook()
    new = rotate_webhook_secret(webhook)
    Webhook.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))

    assert get_current_secrets(Webhook.objects.get()) == [new]


@pytest.mark.django_db
def test_a_rotation_is_in_the_audit_log_without_the_secret():
    webhook = make_webhook()
    new = rotate_webhook_secret(webhook)

    entry = AuditEntry.objects.get(action="rotated")
    assert (entry.noun, entry.thing_number) == ("webhook", webhook.pk)
    kept = AuditEntry.objects.values_list("changes", "note", "thing")
    assert new[len("whsec_") :] not in str(list(kept))
