"""Delivering: take one, send it, write down what came of it; at least once.

A delivery is taken for as long as a lease, by one conditional UPDATE. Who dies with it
leaves it to the next; who is late with it finds that it counts no more. No address can
keep others waiting: a process sends few at once, and few of them to one webhook.
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

from runs import bell
from runs.models import Delivery, Run, Webhook
from runs.services.clock import from_now
from runs.services.commits import give_back
from runs.services.delivery_body import body_of, id_of
from runs.services.held import process
from runs.services.post_delivery import (
    SECONDS,
    Posted,
    post_delivery,
    webhook_policy,
)
from runs.services.redact import Choke
from runs.services.sign_delivery import secrets_of, signed_headers
from tools.netguard import NetPolicy
from tools.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

PAUSES = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0)
"""Seconds from each failed attempt to the next; after the last one it is given up."""
JITTER = 0.1
"""By how much of itself a pause is longer or shorter: they do not come all at once."""
AT_ONCE = 4
"""Sent at once by a process with threads enough: at most a quarter of them."""
OF_ONE = 2
"""Sent at once to one webhook; to one that fails, one."""
SPELL_SECONDS = 10.0
"""After which a thread that sends one after the other makes room for runs."""
RUNG_SECONDS = 10.0
RUNG_AT_ONCE = 20

LOST = "The worker ended during the last attempt."
UNSEEN = "Its owner may not see this run any more."


class Sending:
    """How many deliveries this process sends now."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.busy = 0

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Say whether there is room for one more, and keep it while inside."""
        with self.lock:
            has_room = self.busy < max(1, min(AT_ONCE, process.threads // 4))
            self.busy += has_room
        try:
            yield has_room
        finally:
            with self.lock:
                self.busy -= has_room


sending = Sending()


def deliver(delivery_id: int, *, policy: NetPolicy | None = None) -> None:
    """Send a delivery, and then whatever else is due, for a little while.

    Where the process sends as many as it may, nothing is done: who sends goes on.
    """
    with sending.one_more() as has_room:
        if not has_room or process.is_stopping.is_set():
            return
        try:
            _deliver_some(delivery_id, policy or webhook_policy())
        except (DatabaseError, InterfaceError) as error:
            logger.warning("a delivery waits, the database is away: %s", error)
            connection.close()


def _deliver_some(delivery_id: int, policy: NetPolicy) -> None:
    until = time.monotonic() + SPELL_SECONDS
    delivery = take(delivery_id)
    while delivery is not None:
        settle(delivery, attempt(delivery, policy=policy))
        if process.is_stopping.is_set():
            return
        if time.monotonic() >= until:
            for pk in due_deliveries(1):
                bell.ring_delivery(pk)
            return
        delivery = take_next()


def take_next() -> Delivery | None:
    """Take what is due and is not kept from being sent; None where nothing is."""
    found = (take(pk) for pk in due_deliveries(OF_ONE * AT_ONCE))
    return next((delivery for delivery in found if delivery is not None), None)


def due_deliveries(most: int) -> list[int]:
    """Return what can be sent now, a few of each webhook; those that work come first.

    Of webhooks that fail the one that has for the shortest time is first.
    """
    rows = Delivery.objects.filter(is_due(), webhook=OuterRef("pk"))
    webhooks = Webhook.objects.filter(Exists(rows), is_on=True).order_by(
        F("failing_since").desc(nulls_first=True)
    )
    found = list[int]()
    for webhook in webhooks[:most]:
        due = webhook.deliveries.filter(is_due()).order_by("not_before")
        found += due.values_list("pk", flat=True)[: most_to(webhook)]
    return found[:most]


def ring_due_deliveries() -> int:
    """Ring for what is due and was not rung for lately; return for how many."""
    rung = 0
    quiet = Q(rung_at=None) | Q(rung_at__lt=from_now(-RUNG_SECONDS))
    for pk in due_deliveries(RUNG_AT_ONCE):
        with transaction.atomic():
            if Delivery.objects.filter(quiet & is_due(), pk=pk).update(rung_at=Now()):
                bell.ring_delivery(pk)
                rung += 1
    return rung


def is_due() -> Q:
    """Whether the time of the next attempt has come, and nobody makes it."""
    return is_free() & Q(status=Delivery.Status.WAITING, not_before__lte=Now())


def is_free() -> Q:
    """Whether no attempt is under way."""
    return Q(taken_until=None) | Q(taken_until__lte=Now())


def most_to(webhook: Webhook) -> int:
    """Return how many requests a webhook gets at once."""
    return OF_ONE if webhook.failing_since is None else 1


def take(delivery_id: int) -> Delivery | None:
    """Take a delivery that is due for the time of a lease; None where that cannot be.

    The row of its webhook is locked meanwhile, so that those to one are counted.
    """
    rows = Delivery.objects.filter(is_due(), pk=delivery_id)
    with transaction.atomic():
        webhooks = Webhook.objects.filter(is_on=True, pk__in=rows.values("webhook"))
        webhook = webhooks.select_for_update(no_key=True).first()
        if webhook is None or busy_with(webhook) >= most_to(webhook):
            return None
        lost = rows.filter(attempts__gt=len(PAUSES))
        if lost.update(**ended(Delivery.Status.FAILED), error=LOST):
            return None
        taken = rows.update(
            attempts=F("attempts") + 1,
            taken_until=from_now(settings.LEASE_SECONDS),
        )
        if not taken:
            return None
        related = ("webhook__owner", "run__agent", "run__version", "run__owner")
        return Delivery.objects.select_related(*related).get(pk=delivery_id)


def busy_with(webhook: Webhook) -> int:
    """Return how many attempts are under way to a webhook."""
    taken = Q(status=Delivery.Status.WAITING, taken_until__gt=Now())
    return webhook.deliveries.filter(taken).count()


def attempt(delivery: Delivery, *, policy: NetPolicy) -> Posted:
    """Make one attempt; nothing of the database is held during it."""
    webhook = delivery.webhook
    if not may_be_told(delivery):
        return Posted(0.0, error=UNSEEN, is_final=True)
    try:
        url, keys = webhook.url(), secrets_of(webhook)
    except SecretUnreadable as error:
        return Posted(0.0, error=str(error), is_final=True)
    body = body_of(delivery)
    headers = signed_headers(
        keys, id=id_of(delivery), timestamp=int(time.time()), body=body
    )
    give_back()
    seconds = min(SECONDS, settings.LEASE_SECONDS / 2)
    posted = post_delivery(url, body, headers, policy=policy, seconds=seconds)
    choke = Choke([*keys, url])
    return replace(
        posted, answer=choke.text(posted.answer), error=choke.text(posted.error)
    )


def may_be_told(delivery: Delivery) -> bool:
    """Whether the owner of the webhook may still see the run."""
    owner = delivery.webhook.owner
    if not owner.is_active:
        return False
    visible = Run.objects.visible_to(owner)
    return delivery.run_id is None or visible.filter(pk=delivery.run_id).exists()


def settle(delivery: Delivery, posted: Posted) -> None:
    """Write down what came of an attempt, unless a later one has begun."""
    changes: dict[str, Any] = {
        "answered": posted.answered,
        "answer": posted.answer,
        "error": posted.error,
        "duration_ms": round(posted.seconds * 1000),
    }
    if not posted.error:
        changes |= ended(Delivery.Status.DELIVERED)
    elif posted.is_final or delivery.attempts > len(PAUSES):
        changes |= ended(Delivery.Status.FAILED)
    else:
        pause = PAUSES[delivery.attempts - 1]
        pause *= random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  (no secret)
        changes |= {
            "not_before": from_now(pause),
            "taken_until": None,
            "rung_at": None,
        }
    rows = Delivery.objects.filter(
        pk=delivery.pk, status=Delivery.Status.WAITING, attempts=delivery.attempts
    )
    if not rows.update(**changes):
        return
    webhook = Webhook.objects.filter(pk=delivery.webhook_id)
    if not posted.error:
        webhook.filter(failing_since__isnull=False).update(failing_since=None)
    else:
        webhook.filter(failing_since=None).update(failing_since=Now())


def ended(status: str) -> dict[str, Any]:
    """Return the columns of a delivery that is over."""
    return {
        "status": status,
        "ended_at": Now(),
        "not_before": None,
        "taken_until": None,
    }
