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

from runs.models import Hook, Webhook
from tools.audit.write import write_entry
from tools.secrets import seal, unseal

SECRET_PREFIX = "whsec_"  # noqa: S105  # how a secret begins
SECRET_BYTES = 32
OLD_SECRET_LIFETIME = timedelta(hours=24)
"""How long the previous secret stays in use after a rotation."""


def generate_webhook_secret() -> str:
    """Return a new secret of 256 random bits."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def rotate_webhook_secret(webhook: Webhook) -> str:
    """Set and return a new secret; the old one signs for another day."""
    return replace_secret(webhook, generate_webhook_secret(), noun="webhook")


def replace_secret(hook: Webhook | Hook, made: str, *, noun: str) -> str:
    """Set and return a secret; the old one stays in use for another day."""
    rows = type(hook)._default_manager
    with transaction.atomic():
        row = rows.select_for_update(no_key=True).get(pk=hook.pk)
        rows.filter(pk=row.pk).update(
            sealed_secret=seal(made),
            sealed_old_secret=row.sealed_secret,
            old_secret_until=timezone.now() + OLD_SECRET_LIFETIME,
        )
        write_entry("rotated", noun, row)
    return made


def get_current_secrets(hook: Webhook | Hook) -> list[str]:
    """Return those in use, newest first; raise `SecretUnreadable`."""
    found = [unseal(hook.sealed_secret)]
    until = hook.old_secret_until
    if until is not None and until > timezone.now():
        found.append(unseal(hook.sealed_old_secret))
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
