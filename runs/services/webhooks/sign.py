"""Signing what is sent to a webhook, as the Standard Webhooks specification says.

`webhook-signature` is `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; after
a rotation there are two for a while, with a space between.
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

PREFIX = "whsec_"
BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long the secret before the last rotation signs too."""


def new_secret() -> str:
    """Return a new secret of 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(BYTES)).decode()


def rotate_secret(webhook: Webhook) -> str:
    """Give `webhook` a new secret and return it; the old one signs for a day more."""
    made = new_secret()
    with transaction.atomic():
        row = Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
        Webhook.objects.filter(pk=row.pk).update(
            sealed_secret=seal(made),
            sealed_old_secret=row.sealed_secret,
            old_secret_until=timezone.now() + OVERLAP,
        )
        write_entry("rotated", "webhook", row)
    return made


def secrets_of(webhook: Webhook) -> list[str]:
    """Return the secrets that sign now, the newest first; raise `SecretUnreadable`."""
    found = [unseal(webhook.sealed_secret)]
    until = webhook.old_secret_until
    if until is not None and until > timezone.now():
        found.append(unseal(webhook.sealed_old_secret))
    return found


def signed_headers(
    keys: list[str], *, id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the three headers by which a receiver knows that it was us, and when."""
    message = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(key, message) for key in keys),
    }


def signature(key: str, message: bytes) -> str:
    """Return one signature of a message."""
    raw = base64.b64decode(key.removeprefix(PREFIX))
    digest = hmac.new(raw, message, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
