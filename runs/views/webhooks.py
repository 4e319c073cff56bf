"""The list of webhooks, the page of a webhook with its deliveries, and actions."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.webhook import EVENT_LABELS, WebhookForm
from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Delivery, Hook, Webhook, WebhookEvent
from runs.models.webhooks import SCORE_EVENT, TEST_EVENT
from runs.services.webhooks.manage import (
    MAX_RESENT,
    delete_webhook,
    resend_delivery,
    resend_failed_deliveries,
    send_test_delivery,
    set_webhook_enabled,
)
from runs.services.webhooks.sign import rotate_webhook_secret
from runs.store.database_clock import read_database_time
from runs.ui.frame.undo import add_switch_message
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.page import render_list
from tools.secrets import SecretUnreadable, seal, unseal

MAX_DELIVERIES = 50
"""Deliveries on the page of a webhook."""
DELIVERY_FIELDS = ("event", "run__title", "error", "status")
"""What the search of deliveries reads."""


class WebhookRow(NamedTuple):
    webhook: Webhook
    tone: str
    words: str
    events: str


@require_GET
def webhook_list(request: HtmxRequest) -> HttpResponse:
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
    query = get_search_text(request)
    webhooks = search_rows(webhooks, query, "name", "host", "owner__username")
    rows = [
        WebhookRow(
            webhook,
            *get_webhook_state(webhook),
            events=describe_webhook_events(webhook),
        )
        for webhook in webhooks
    ]
    return render_list(
        request,
        "webhook",
        rows=rows,
        q=query,
        actions=["pause", "resume", "delete"],
        shows_owners=request.user.is_superuser,
    )


class WebhookState(NamedTuple):
    tone: str
    words: str


def get_webhook_state(webhook: Webhook) -> WebhookState:
    if not webhook.is_on:
        return WebhookState("", _("Paused"))
    if webhook.failing_since is not None:
        return WebhookState("bad", _("Failing"))
    return WebhookState("good", _("Active"))


def describe_webhook_events(webhook: Webhook) -> str:
    labels = [str(EVENT_LABELS[e]) for e in EVENT_LABELS if e in webhook.events]
    if len(labels) == len(EVENT_LABELS):
        return _("All events")
    return pgettext("between items of a list", ", ").join(labels)


def get_event_label(event: str) -> str:
    """Return the label of a stored event; unknown names unchanged."""
    if event == TEST_EVENT:
        return _("Test")
    if event == SCORE_EVENT:
        return _("Failing score")
    return str(EVENT_LABELS[WebhookEvent(event)]) if event in EVENT_LABELS else event


@require_http_methods(["GET", "POST"])
def webhook_create(request: HtmxRequest) -> HttpResponse:
    """Create a webhook; only the next page shows its secret."""
    blank = Webhook(
        owner=request.user,
        events=[
            WebhookEvent.NEEDS_APPROVAL,
            WebhookEvent.NEEDS_DECISION,
            WebhookEvent.FAILED,
        ],
    )
    form = WebhookForm(request.POST or None, instance=blank)
    if form.is_valid():
        webhook = form.save()
        store_new_secret(request, webhook, unseal(webhook.sealed_secret))
        messages.success(
            request,
            _("Webhook %(name)s created. Send a test to check the connection.")
            % {"name": webhook},
        )
        return redirect("webhook-detail", pk=webhook.pk)
    return render(request, "webhooks/form.html", {"form": form, "webhook": blank})


@require_GET
@never_cache
def webhook_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    webhook = get_visible_webhook(request, pk)
    context = build_webhook_context(webhook, get_search_text(request))
    if not wants_part(request):
        context |= {"secret": pop_new_secret(request, webhook)}
    return render_page_or_part(
        request, "webhooks/detail.html", "webhooks/_deliveries.html", context
    )


@require_http_methods(["GET", "POST"])
def webhook_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    webhook = get_visible_webhook(request, pk)
    form = WebhookForm(request.POST or None, instance=webhook)
    if form.is_valid():
        form.save()
        messages.success(request, _("Webhook %(name)s saved.") % {"name": webhook})
        return redirect("webhook-detail", pk=pk)
    if form.errors:  # the head of the page keeps the stored name
        webhook = get_visible_webhook(request, pk)
    return render(request, "webhooks/form.html", {"form": form, "webhook": webhook})


@require_POST
def webhook_test(request: HtmxRequest, pk: int) -> HttpResponse:
    webhook = get_visible_webhook(request, pk)
    if not webhook.is_on:
        messages.warning(
            request, _("The webhook is paused. Resume it before you send a test.")
        )
    else:
        send_test_delivery(webhook)
    return redirect("webhook-detail", pk=pk)


@require_POST
def webhook_switch(request: HtmxRequest, pk: int) -> HttpResponse:
    webhook = get_visible_webhook(request, pk)
    is_on = request.POST.get("on") == "1"
    set_webhook_enabled(webhook, is_on=is_on)
    add_switch_message(request, "webhook", webhook, is_on=is_on)
    return redirect("webhook-detail", pk=pk)


@require_POST
def webhook_rotate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Create a new secret; the next page shows it."""
    webhook = get_visible_webhook(request, pk)
    store_new_secret(request, webhook, rotate_webhook_secret(webhook))
    return redirect("webhook-detail", pk=pk)


@require_http_methods(["GET", "POST"])
def webhook_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; POST deletes."""
    webhook = get_visible_webhook(request, pk)
    if request.method == "POST":
        delete_webhook(webhook)
        messages.success(
            request,
            _("Webhook %(name)s deleted. No more events are sent to it.")
            % {"name": webhook},
        )
        return redirect("webhook-list")
    return render(request, "webhooks/delete.html", {"webhook": webhook})


@require_POST
def delivery_again(request: HtmxRequest, pk: int, delivery_pk: int) -> HttpResponse:
    webhook = get_visible_webhook(request, pk)
    delivery = get_object_or_404(webhook.deliveries, pk=delivery_pk)
    if not resend_delivery(delivery):
        messages.warning(
            request, _("An attempt is in progress. Wait until it has finished.")
        )
    return redirect("webhook-detail", pk=pk)


@require_POST
def webhook_resend(request: HtmxRequest, pk: int) -> HttpResponse:
    """Send the failed deliveries again."""
    webhook = get_visible_webhook(request, pk)
    count = resend_failed_deliveries(webhook)
    text = ngettext(
        "%(count)s delivery is sent again.",
        "%(count)s deliveries are sent again.",
        count,
    )
    messages.success(request, text % {"count": count})
    return redirect("webhook-detail", pk=pk)


def get_visible_webhook(request: HtmxRequest, pk: int) -> Webhook:
    rows = Webhook.objects.visible_to(request.user).select_related("owner", "agent")
    return get_object_or_404(rows, pk=pk)


class DeliveryRow(NamedTuple):
    delivery: Delivery
    event: str
    is_under_way: bool
    took: float | None
    """Seconds of the latest attempt."""


def build_webhook_context(webhook: Webhook, query: str) -> dict[str, Any]:
    """Return the newest deliveries that have the words of `query`, and their state."""
    now = read_database_time()
    waiting = webhook.deliveries.filter(status=Delivery.Status.WAITING)
    is_due = waiting.filter(available_at__lte=now).exists()  # before the rows
    rows = search_rows(webhook.deliveries.all(), query, *DELIVERY_FIELDS)
    newest = rows.select_related("run").order_by("-pk")[:MAX_DELIVERIES]
    sent = [
        DeliveryRow(
            delivery,
            get_event_label(delivery.event),
            delivery.lease_until is not None and delivery.lease_until > now,
            None if delivery.duration_ms is None else delivery.duration_ms / 1000,
        )
        for delivery in newest
    ]
    return {
        "webhook": webhook,
        "q": query,
        "state": get_webhook_state(webhook),
        "events": describe_webhook_events(webhook),
        "sent": sent,
        "waiting": waiting.count(),
        "failed": webhook.deliveries.filter(status=Delivery.Status.FAILED)[
            :MAX_RESENT
        ].count(),
        "is_busy": webhook.is_on and is_due,
    }


def store_new_secret(request: HtmxRequest, hook: Webhook | Hook, secret: str) -> None:
    """Store a new secret, encrypted, in the session for the page that shows it."""
    request.session[f"{hook._meta.model_name}-secret"] = [hook.pk, seal(secret)]


def pop_new_secret(request: HtmxRequest, hook: Webhook | Hook) -> str:
    """Return the new secret of `hook` once; empty if there is none."""
    key = f"{hook._meta.model_name}-secret"
    pk, sealed = request.session.get(key, [None, ""])
    if pk != hook.pk:
        return ""
    del request.session[key]
    try:
        return unseal(sealed)
    except SecretUnreadable:
        return ""
