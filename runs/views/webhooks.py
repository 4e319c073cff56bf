"""Webhooks: the list, the form, one webhook with its deliveries, what can be done."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import OuterRef, Q, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.webhook import WebhookForm
from runs.htmx import HtmxRequest, page_or_part, wants_part
from runs.models import Delivery, Event, Webhook
from runs.models.webhooks import TEST
from runs.services.change_webhook import delete_webhook, switch_webhook
from runs.services.send_again import send_again, send_test
from runs.services.sign_delivery import rotate_secret
from tools.secrets import SecretUnreadable, seal, unseal

JUST_MADE = "webhook-secret"
"""Where the session keeps a new secret, sealed, until its page has shown it."""
SHOWN = 50
"""Deliveries on the page of a webhook."""
EVENT_WORDS = {**{str(e.value): str(e.label) for e in Event}, TEST: "a test"}


class Row(NamedTuple):
    """A webhook in the list."""

    webhook: Webhook
    tone: str
    words: str
    """How it does."""
    events: str


@require_GET
def webhook_list(request: HtmxRequest) -> HttpResponse:
    """Show one's webhooks, and how they do."""
    newest = Delivery.objects.filter(webhook=OuterRef("pk")).order_by("-pk")
    webhooks = (
        Webhook.objects.visible_to(request.user)
        .select_related("owner", "agent")
        .annotate(
            last_at=Subquery(newest.values("created_at")[:1]),
            last_status=Subquery(newest.values("status")[:1]),
        )
        .order_by("name", "pk")
    )
    rows = [
        Row(webhook, *state_of(webhook), events=events_of(webhook))
        for webhook in webhooks
    ]
    context = {"rows": rows, "shows_owners": request.user.is_superuser}
    return render(request, "webhooks/list.html", context)


class State(NamedTuple):
    """How a webhook does: a tone, and the words that go with it."""

    tone: str
    words: str


def state_of(webhook: Webhook) -> State:
    """Return how a webhook does, so that one sees it among others."""
    if not webhook.is_on:
        return State("", "paused")
    if webhook.failing_since is not None:
        return State("bad", "failing")
    return State("good", "on")


def events_of(webhook: Webhook) -> str:
    """Return in words what is told."""
    words = [EVENT_WORDS[event] for event in EVENT_WORDS if event in webhook.events]
    return "every change" if len(words) == len(Event) else ", ".join(words)


@require_http_methods(["GET", "POST"])
def webhook_create(request: HtmxRequest) -> HttpResponse:
    """Ask for a new webhook; its secret is shown by the next page and never again."""
    blank = Webhook(
        owner=request.user,
        events=[Event.NEEDS_APPROVAL, Event.NEEDS_DECISION, Event.FAILED],
    )
    form = WebhookForm(request.POST or None, instance=blank)
    if form.is_valid():
        webhook = form.save()
        keep_secret(request, webhook, unseal(webhook.sealed_secret))
        messages.success(request, f"{webhook} is saved. Send a test now.")
        return redirect("webhook-detail", pk=webhook.pk)
    return render(request, "webhooks/form.html", {"form": form, "webhook": blank})


@require_GET
@never_cache
def webhook_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one webhook and its last deliveries."""
    webhook = visible(request, pk)
    context = shown(webhook)
    if not wants_part(request):
        context |= {"secret": take_secret(request, webhook)}
    return page_or_part(
        request, "webhooks/detail.html", "webhooks/_deliveries.html", context
    )


@require_http_methods(["GET", "POST"])
def webhook_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Change a webhook."""
    webhook = visible(request, pk)
    form = WebhookForm(request.POST or None, instance=webhook)
    if form.is_valid():
        form.save()
        messages.success(request, f"{webhook} is saved.")
        return redirect("webhook-detail", pk=pk)
    if form.errors:  # the head of the page keeps the stored name
        webhook = visible(request, pk)
    return render(request, "webhooks/form.html", {"form": form, "webhook": webhook})


@require_POST
def webhook_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Put a test on its way."""
    webhook = visible(request, pk)
    if not webhook.is_on:
        messages.warning(request, "It is paused. Let it go on, then send a test.")
    else:
        send_test(webhook)
    return redirect("webhook-detail", pk=pk)


@require_POST
def webhook_switch(request: HtmxRequest, pk: int) -> HttpResponse:
    """Pause a webhook, or let it go on."""
    webhook = visible(request, pk)
    switch_webhook(webhook, is_on=request.POST.get("on") == "1")
    return redirect("webhook-detail", pk=pk)


@require_POST
def webhook_rotate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Make a new secret; the next page shows it."""
    webhook = visible(request, pk)
    keep_secret(request, webhook, rotate_secret(webhook))
    return redirect("webhook-detail", pk=pk)


@require_http_methods(["GET", "POST"])
def webhook_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask whether it is meant, then delete."""
    webhook = visible(request, pk)
    if request.method == "POST":
        delete_webhook(webhook)
        messages.success(request, f"{webhook} is deleted. Nothing is sent there.")
        return redirect("webhook-list")
    return render(request, "webhooks/delete.html", {"webhook": webhook})


@require_POST
def delivery_again(request: HtmxRequest, pk: int, delivery_pk: int) -> HttpResponse:
    """Send once more what was sent before."""
    webhook = visible(request, pk)
    delivery = get_object_or_404(webhook.deliveries, pk=delivery_pk)
    if not send_again(delivery):
        messages.warning(request, "An attempt is under way. Wait for what comes of it.")
    return redirect("webhook-detail", pk=pk)


def visible(request: HtmxRequest, pk: int) -> Webhook:
    """Return the webhook; 404 for strangers."""
    rows = Webhook.objects.visible_to(request.user).select_related("owner", "agent")
    return get_object_or_404(rows, pk=pk)


class Sent(NamedTuple):
    """A delivery on the page."""

    delivery: Delivery
    event: str
    is_under_way: bool
    took: float | None
    """Seconds of the last attempt."""


def shown(webhook: Webhook) -> dict[str, Any]:
    """Return what the page of a webhook shows."""
    now = timezone.now()
    newest = webhook.deliveries.select_related("run").order_by("-pk")[:SHOWN]
    sent = [
        Sent(
            delivery,
            EVENT_WORDS.get(delivery.event, delivery.event),
            delivery.taken_until is not None and delivery.taken_until > now,
            None if delivery.duration_ms is None else delivery.duration_ms / 1000,
        )
        for delivery in newest
    ]
    soon = Q(status=Delivery.Status.WAITING, not_before__lte=now)
    waiting = webhook.deliveries.filter(status=Delivery.Status.WAITING)
    return {
        "webhook": webhook,
        "state": state_of(webhook),
        "events": events_of(webhook),
        "sent": sent,
        "waiting": waiting.count(),
        "is_busy": webhook.is_on and waiting.filter(soon).exists(),
    }


def keep_secret(request: HtmxRequest, webhook: Webhook, secret: str) -> None:
    """Keep a new secret for the page that shows it."""
    request.session[JUST_MADE] = [webhook.pk, seal(secret)]


def take_secret(request: HtmxRequest, webhook: Webhook) -> str:
    """Return the secret that was just made for `webhook`, once; else nothing."""
    pk, sealed = request.session.get(JUST_MADE, [None, ""])
    if pk != webhook.pk:
        return ""
    del request.session[JUST_MADE]
    try:
        return unseal(sealed)
    except SecretUnreadable:
        return ""
