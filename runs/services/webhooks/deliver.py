"""Deliver events to webhooks: claim, send, record; at least once.

A delivery is claimed for one lease by a conditional UPDATE. If its process dies,
another one claims it; a late result no longer counts. A slow address cannot block
others: a process sends few deliveries at once, and few of them to one webhook.
"""

import logging
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from runs import wakeup
from runs.models import Delivery, Run, SiteRestore, Webhook
from runs.services.webhooks.payload import build_delivery_body, get_message_id
from runs.services.webhooks.post import (
    TIMEOUT_SECONDS,
    PostResult,
    get_webhook_net_policy,
    post_delivery,
)
from runs.services.webhooks.sign import build_signature_headers, get_current_secrets
from runs.store.claims import worker_state
from runs.store.commits import release_connection
from runs.store.database_clock import db_time_from_now
from runs.store.metric_counters import WEBHOOK_ATTEMPTS
from runs.store.sanitizer import Sanitizer
from tools.net.netguard import NetPolicy
from tools.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

RETRY_DELAYS = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0)
"""Seconds between attempts; after the last one the delivery fails."""
RETRY_JITTER = 0.1
"""Fraction by which a delay varies, so that retries spread out."""
MAX_CONCURRENT_DELIVERIES = 4
"""Sent at once by a process: at most a quarter of its threads."""
MAX_CONCURRENT_PER_WEBHOOK = 2
"""Sent at once to one webhook; to a failing one, one."""
MAX_SENDING_SECONDS = 10.0
"""Time after which a thread that sends deliveries makes room for runs."""
ENQUEUE_INTERVAL_SECONDS = 10.0
ENQUEUE_BATCH_SIZE = 20

WORKER_LOST_MESSAGE = "The worker stopped during the last attempt."
RUN_NOT_VISIBLE_MESSAGE = "The owner of the webhook can no longer see this run."


class DeliverySlots:
    """The number of deliveries this process is sending."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.slots_in_use = 0

    @contextmanager
    def acquire_slot(self) -> Iterator[bool]:
        """Yield whether there is a free slot, and hold it meanwhile."""
        with self.lock:
            has_room = self.slots_in_use < max(
                1, min(MAX_CONCURRENT_DELIVERIES, worker_state.threads // 4)
            )
            self.slots_in_use += has_room
        try:
            yield has_room
        finally:
            with self.lock:
                self.slots_in_use -= has_room


delivery_slots = DeliverySlots()


def send_delivery(delivery_id: int, *, policy: NetPolicy | None = None) -> None:
    """Send a delivery, and then other due ones for a short time.

    Without a free slot it does nothing: the busy threads continue with it.
    """
    with delivery_slots.acquire_slot() as has_room:
        if not has_room or worker_state.is_stopping.is_set():
            return
        try:
            _send_until_time_is_up(delivery_id, policy or get_webhook_net_policy())
        except (DatabaseError, InterfaceError) as error:
            logger.warning("delivery postponed, database not available: %s", error)
            connection.close()


def _send_until_time_is_up(delivery_id: int, policy: NetPolicy) -> None:
    until = time.monotonic() + MAX_SENDING_SECONDS
    delivery = claim_delivery(delivery_id)
    while delivery is not None:
        record_attempt(delivery, attempt_delivery(delivery, policy=policy))
        if worker_state.is_stopping.is_set():
            return
        if time.monotonic() >= until:
            for pk in find_due_deliveries(1):
                wakeup.enqueue_delivery(pk)
            return
        delivery = claim_next_delivery()


def claim_next_delivery() -> Delivery | None:
    """Claim a due delivery; None if there is none."""
    found = (
        claim_delivery(pk)
        for pk in find_due_deliveries(
            MAX_CONCURRENT_PER_WEBHOOK * MAX_CONCURRENT_DELIVERIES
        )
    )
    return next((delivery for delivery in found if delivery is not None), None)


def find_due_deliveries(most: int) -> list[int]:
    """Return due deliveries, a few of each webhook; working webhooks come first.

    Of failing webhooks, the one that began to fail last comes first.
    """
    rows = Delivery.objects.filter(build_due_filter(), webhook=OuterRef("pk"))
    webhooks = Webhook.objects.filter(Exists(rows), is_on=True).order_by(
        F("failing_since").desc(nulls_first=True)
    )
    found = list[int]()
    for webhook in webhooks[:most]:
        due = webhook.deliveries.filter(build_due_filter()).order_by("available_at")
        found += due.values_list("pk", flat=True)[: get_webhook_concurrency(webhook)]
    return found[:most]


def enqueue_due_deliveries() -> int:
    """Enqueue due deliveries that were not enqueued lately; return how many."""
    rung = 0
    quiet = Q(enqueued_at=None) | Q(
        enqueued_at__lt=db_time_from_now(-ENQUEUE_INTERVAL_SECONDS)
    )
    for pk in find_due_deliveries(ENQUEUE_BATCH_SIZE):
        with transaction.atomic():
            if Delivery.objects.filter(quiet & build_due_filter(), pk=pk).update(
                enqueued_at=Now()
            ):
                wakeup.enqueue_delivery(pk)
                rung += 1
    return rung


def build_due_filter() -> Q:
    """Match deliveries that are due and unclaimed."""
    return build_unclaimed_filter() & Q(
        status=Delivery.Status.WAITING, available_at__lte=Now()
    )


def build_unclaimed_filter() -> Q:
    """Match deliveries without an attempt in progress."""
    return Q(lease_until=None) | Q(lease_until__lte=Now())


def get_webhook_concurrency(webhook: Webhook) -> int:
    return MAX_CONCURRENT_PER_WEBHOOK if webhook.failing_since is None else 1


def claim_delivery(delivery_id: int) -> Delivery | None:
    """Claim a due delivery for one lease; None if that is not possible.

    The row of its webhook is locked meanwhile, so that concurrent ones are counted.
    """
    rows = Delivery.objects.filter(build_due_filter(), pk=delivery_id)
    with transaction.atomic():
        webhooks = Webhook.objects.filter(
            ~Exists(SiteRestore.objects.unconfirmed()),
            is_on=True,
            pk__in=rows.values("webhook"),
        )
        webhook = webhooks.select_for_update(no_key=True).first()
        if webhook is None or count_active_attempts(webhook) >= get_webhook_concurrency(
            webhook
        ):
            return None
        lost = rows.filter(attempts__gt=len(RETRY_DELAYS))
        if lost.update(
            **build_ended_columns(Delivery.Status.FAILED), error=WORKER_LOST_MESSAGE
        ):
            return None
        taken = rows.update(
            attempts=F("attempts") + 1,
            lease_until=db_time_from_now(settings.LEASE_SECONDS),
        )
        if not taken:
            return None
        related = ("webhook__owner", "run__agent", "run__version", "run__owner")
        return Delivery.objects.select_related(*related).get(pk=delivery_id)


def count_active_attempts(webhook: Webhook) -> int:
    taken = Q(status=Delivery.Status.WAITING, lease_until__gt=Now())
    return webhook.deliveries.filter(taken).count()


def attempt_delivery(delivery: Delivery, *, policy: NetPolicy) -> PostResult:
    """Make one attempt; it holds nothing of the database meanwhile."""
    webhook = delivery.webhook
    if not can_owner_see_run(delivery):
        return PostResult(0.0, error=RUN_NOT_VISIBLE_MESSAGE, is_final=True)
    try:
        url, keys = webhook.url(), get_current_secrets(webhook)
    except SecretUnreadable as error:
        return PostResult(0.0, error=str(error), is_final=True)
    body = build_delivery_body(delivery)
    headers = build_signature_headers(
        keys, id=get_message_id(delivery), timestamp=int(time.time()), body=body
    )
    release_connection()
    seconds = min(TIMEOUT_SECONDS, settings.LEASE_SECONDS / 2)
    posted = post_delivery(url, body, headers, policy=policy, seconds=seconds)
    sanitizer = Sanitizer([*keys, url])
    return replace(
        posted,
        response_text=sanitizer.text(posted.response_text),
        error=sanitizer.text(posted.error),
    )


def can_owner_see_run(delivery: Delivery) -> bool:
    owner = delivery.webhook.owner
    if not owner.is_active:
        return False
    visible = Run.objects.visible_to(owner)
    return delivery.run_id is None or visible.filter(pk=delivery.run_id).exists()


def record_attempt(delivery: Delivery, posted: PostResult) -> None:
    """Record the result of an attempt, unless a later one has begun."""
    changes: dict[str, Any] = {
        "response_status": posted.response_status,
        "response_text": posted.response_text,
        "error": posted.error,
        "duration_ms": round(posted.seconds * 1000),
    }
    if not posted.error:
        changes |= build_ended_columns(Delivery.Status.DELIVERED)
    elif posted.is_final or delivery.attempts > len(RETRY_DELAYS):
        changes |= build_ended_columns(Delivery.Status.FAILED)
    else:
        pause = RETRY_DELAYS[delivery.attempts - 1]
        pause *= random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311  (no secret)
        changes |= {
            "available_at": db_time_from_now(pause),
            "lease_until": None,
            "enqueued_at": None,
        }
    rows = Delivery.objects.filter(
        pk=delivery.pk, status=Delivery.Status.WAITING, attempts=delivery.attempts
    )
    if not rows.update(**changes):
        return
    WEBHOOK_ATTEMPTS.add(outcome="failed" if posted.error else "delivered")
    webhook = Webhook.objects.filter(pk=delivery.webhook_id)
    if not posted.error:
        webhook.filter(failing_since__isnull=False).update(failing_since=None)
    else:
        webhook.filter(failing_since=None).update(failing_since=Now())


def build_ended_columns(status: str) -> dict[str, Any]:
    return {
        "status": status,
        "ended_at": Now(),
        "available_at": None,
        "lease_until": None,
    }
