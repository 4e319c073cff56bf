"""Sign webhook requests, as the Standard Webhooks specification says.

`webhook-signature` is `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; for a
day after a rotation there are two, separated by a space.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from runs.models import Webhook
from tools.audit.write import write_entry
from tools.secrets import seal, unseal

SECRET_PREFIX = "whsec_"  # noqa: S105  # how a secret begins
SECRET_BYTES = 32
OLD_SECRET_LIFETIME = timedelta(hours=24)
"""How long the previous secret signs too after a rotation."""


def generate_webhook_secret() -> str:
    """Return a new secret of 256 random bits."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def rotate_webhook_secret(webhook: Webhook) -> str:
    """Set and return a new secret; the old one signs for another day."""
    made = generate_webhook_secret()
    with transaction.atomic():
        row = Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
        Webhook.objects.filter(pk=row.pk).update(
            sealed_secret=seal(made),
            sealed_old_secret=row.sealed_secret,
            old_secret_until=timezone.now() + OLD_SECRET_LIFETIME,
        )
        write_entry("rotated", "webhook", row)
    return made


def get_signing_secrets(webhook: Webhook) -> list[str]:
    """Return the current secrets, newest first; raise `SecretUnreadable`."""
    found = [unseal(webhook.sealed_secret)]
    until = webhook.old_secret_until
    if until is not None and until > timezone.now():
        found.append(unseal(webhook.sealed_old_secret))
    return found


def build_signature_headers(
    keys: list[str], *, id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the three headers that prove sender and time."""
    message = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(compute_signature(key, message) for key in keys),
    }


def compute_signature(key: str, message: bytes) -> str:
    raw = base64.b64decode(key.removeprefix(SECRET_PREFIX))
    digest = hmac.new(raw, message, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
