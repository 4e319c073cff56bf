"""Create, rotate, pause and delete incoming webhooks, and prune their log."""

import secrets
import time
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from runs.models import Hook, HookRequest
from runs.services.webhooks.sign import generate_webhook_secret, replace_secret

MAX_PER_HOOK = 1_000
"""Rows that name no message. The others are kept for `MAX_AGE`, however many follow:
whoever could push one out could send its message again."""
MAX_AGE = timedelta(days=30)
"""How long the log is kept, and so how long a message id is known."""
BATCH_SIZE = 500
IDLE_PAUSE_SECONDS = 3_600.0


def generate_hook_key() -> str:
    """Return the secret part of an address, 144 random bits."""
    return secrets.token_urlsafe(18)


def generate_hook_secret(scheme: str) -> str:
    """Return a new secret of 256 random bits in the form of its scheme."""
    if scheme == Hook.Scheme.STANDARD:
        return generate_webhook_secret()
    return secrets.token_urlsafe(32)


def build_hook_url(hook: Hook) -> str:
    return f"{settings.PUBLIC_URL}/in/{hook.key}/"


def rotate_hook_secret(hook: Hook, secret: str = "") -> str:
    """Set and return a new secret; the old one is accepted for another day."""
    made = secret or generate_hook_secret(hook.scheme)
    return replace_secret(hook, made, noun="incoming webhook")


def set_hook_enabled(hook: Hook, *, is_on: bool) -> None:
    """Pause or resume it; while it is paused, requests are refused."""
    hook.is_on = is_on
    hook.save(update_fields=["is_on"])


def delete_hook(hook: Hook) -> None:
    """Delete it with its log; its runs stay."""
    with transaction.atomic():
        Hook.objects.select_for_update().filter(pk=hook.pk).first()
        HookRequest.objects.filter(hook=hook).delete()
        hook.delete()


@dataclass
class HookLogPruner:
    """When a worker prunes next."""

    due: float = 0.0

    def prune_if_due(self) -> int:
        """Prune some if it is time; after nothing was pruned, wait an hour."""
        if time.monotonic() < self.due:
            return 0
        gone = prune_hook_requests()
        if not gone:
            self.due = time.monotonic() + IDLE_PAUSE_SECONDS
        return gone


def prune_hook_requests() -> int:
    """Delete some rows of the log that are too old or too many; return how many."""
    old = HookRequest.objects.filter(created_at__lt=timezone.now() - MAX_AGE)
    gone = _delete_some(list(old.values_list("pk", flat=True)[:BATCH_SIZE]))
    nameless = HookRequest.objects.filter(message_id="")
    numbers = nameless.order_by().values_list("hook").annotate(Count("pk"))
    for hook, _ in numbers.filter(pk__count__gt=MAX_PER_HOOK):
        own = nameless.filter(hook=hook).order_by("-pk")
        over = own.values_list("pk", flat=True)[MAX_PER_HOOK:][:BATCH_SIZE]
        gone += _delete_some(list(over))
    return gone


def _delete_some(keys: list[int]) -> int:
    return HookRequest.objects.filter(pk__in=keys).delete()[0]
