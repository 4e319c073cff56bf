"""Webhooks and their deliveries in the API; secrets are shown once."""

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response, no_content
from runs.api.etags import build_etag, check_if_match
from runs.api.problems import field_problem, form_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.runs import get_agent_for_user
from runs.api.shapes import Shape
from runs.forms.webhook import MAX_URL_LENGTH, WebhookForm
from runs.models import Delivery, Webhook
from runs.serializers import Json, format_timestamp
from runs.services.webhooks.manage import (
    delete_webhook,
    resend_delivery,
    send_test_delivery,
    set_webhook_enabled,
)
from runs.services.webhooks.sign import rotate_webhook_secret
from tools.secrets import unseal

EventName = Literal[
    "run.needs_approval",
    "run.needs_decision",
    "run.succeeded",
    "run.limit_reached",
    "run.failed",
    "run.canceled",
]
Events = Annotated[list[EventName], Field(min_length=1, max_length=20)]
Url = Annotated[str, Field(min_length=1, max_length=MAX_URL_LENGTH)]


class WebhookFields(StrictBody):
    """What can be changed of a webhook; what is left out stays."""

    shape: Literal["event", "text"] = "event"
    """An event as JSON, or a text message for a chat."""
    agent: str | None = None
    """Slug of the only agent whose runs are reported; null for all."""
    everything: bool = False
    """Runs of all users; for administrators."""


class NewWebhookBody(WebhookFields):
    """The body of `POST /api/v1/webhooks`."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    url: Url
    """Write-only."""
    events: Events


class WebhookBody(WebhookFields):
    """The body of `PATCH /api/v1/webhooks/{id}`."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = ""
    url: Url = ""
    """Write-only."""
    events: Events = []


class WebhookShape(Shape):
    """An address that is notified of events."""

    id: int
    name: str
    owner: str
    host: str
    """Scheme, host and port; the whole address is not shown."""
    shape: Literal["event", "text"]
    events: list[str]
    agent: str | None
    everything: bool
    is_paused: bool
    failing_since: str | None
    created_at: str
    secret: str = ""
    """Signs each request. Shown once, to those who create the webhook or rotate it."""


class DeliveryShape(Shape):
    """One event on its way."""

    id: int
    event: str
    run: int | None
    """Null for a test."""
    status: Literal["waiting", "delivered", "failed"]
    attempts: int
    available_at: str | None
    """When the next attempt is due."""
    response_status: int | None
    response_text: str
    """The beginning of the last response."""
    error: str
    duration_ms: int | None
    created_at: str
    ended_at: str | None


def webhook_json(webhook: Webhook) -> Json:
    return {
        "id": webhook.pk,
        "name": webhook.name,
        "owner": webhook.owner.get_username(),
        "host": webhook.host,
        "shape": webhook.shape,
        "events": list(webhook.events),
        "agent": webhook.agent.slug if webhook.agent else None,
        "everything": webhook.everything,
        "is_paused": not webhook.is_on,
        "failing_since": format_timestamp(webhook.failing_since),
        "created_at": format_timestamp(webhook.created_at),
    }


def delivery_json(delivery: Delivery) -> Json:
    return {
        "id": delivery.pk,
        "event": delivery.event,
        "run": delivery.run_id,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "available_at": format_timestamp(delivery.available_at),
        "response_status": delivery.response_status,
        "response_text": delivery.response_text,
        "error": delivery.error,
        "duration_ms": delivery.duration_ms,
        "created_at": format_timestamp(delivery.created_at),
        "ended_at": format_timestamp(delivery.ended_at),
    }


def get_webhook(user: User, pk: str) -> Webhook:
    rows = Webhook.objects.visible_to(user).select_related("owner", "agent")
    found = rows.filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Webhook", pk)
    return found


def get_delivery(user: User, pk: str, number: str) -> Delivery:
    found = get_webhook(user, pk).deliveries.filter(pk=int(number)).first()
    if found is None:
        raise not_found("Delivery", number)
    return found


def list_webhooks(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """Your webhooks, the newest first; administrators see all."""
    rows = Webhook.objects.visible_to(user).select_related("owner", "agent")
    return json_response(paginate_by_id(rows, query, webhook_json))


def read_webhook(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One webhook, without its secrets, with an ETag."""
    return respond_with_webhook(get_webhook(user, pk))


def respond_with_webhook(webhook: Webhook) -> HttpResponse:
    return json_response(webhook_json(webhook), ETag=get_webhook_etag(webhook))


def create_webhook(
    request: HttpRequest, user: User, body: NewWebhookBody
) -> HttpResponse:
    """Create a webhook; only this response has its secret."""
    webhook = save_webhook(Webhook(owner=user), body)
    shape = {**webhook_json(webhook), "secret": unseal(webhook.sealed_secret)}
    location = reverse("api-webhook", args=[webhook.pk])
    return json_response(shape, 201, Location=location)


def get_webhook_etag(webhook: Webhook) -> str:
    """Return the ETag of its settings; deliveries do not alter it."""
    settings = (
        *(webhook.name, webhook.sealed_url, webhook.shape, list(webhook.events)),
        *(webhook.agent_id, webhook.everything),
    )
    return build_etag(f"Webhook {webhook.pk} {settings!r}")


def change_webhook(
    request: HttpRequest, user: User, pk: str, body: WebhookBody
) -> HttpResponse:
    """Change a webhook; without `url` it keeps its address."""
    get_webhook(user, pk)
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update().filter(pk=int(pk)).first()
        if webhook is None:
            raise not_found("Webhook", pk)
        check_if_match(request, get_webhook_etag(webhook))
        save_webhook(webhook, body)
    return respond_with_webhook(webhook)


def save_webhook(webhook: Webhook, body: NewWebhookBody | WebhookBody) -> Webhook:
    """Check the body as the form of the page does, and save it; raise a 422."""
    given = build_webhook_form_data(webhook, body)
    form = WebhookForm(given, instance=webhook)
    if not form.is_valid():
        raise form_problem(form)
    return form.save()


def build_webhook_form_data(
    webhook: Webhook, body: NewWebhookBody | WebhookBody
) -> dict[str, Any]:
    """Return the fields of the form: those of the body, and the stored ones."""
    sent = body.model_dump(exclude_unset=True)
    if sent.get("everything") and not webhook.owner.is_superuser:
        message = "Only webhooks of administrators report the runs of all users."
        raise field_problem("everything", message, 403)
    stored = {
        "name": webhook.name,
        "shape": webhook.shape or "event",
        "events": webhook.events,
        "everything": webhook.everything,
    }
    agent = webhook.agent_id
    if "agent" in sent:
        slug = sent.pop("agent")
        agent = get_agent_for_user(webhook.owner, slug).pk if slug else None
    return {**stored, **sent, "agent": agent or ""}


def pause_webhook(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Send nothing until it is resumed; deliveries wait."""
    set_webhook_enabled(get_webhook(user, pk), is_on=False)
    return json_response(webhook_json(get_webhook(user, pk)))


def resume_webhook(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Send again, also what has waited."""
    set_webhook_enabled(get_webhook(user, pk), is_on=True)
    return json_response(webhook_json(get_webhook(user, pk)))


def rotate_webhook(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Create a new secret; the old one signs for another day."""
    webhook = get_webhook(user, pk)
    secret = rotate_webhook_secret(webhook)
    return json_response({**webhook_json(webhook), "secret": secret})


def send_webhook_test(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Send a test event."""
    webhook = get_webhook(user, pk)
    if not webhook.is_on:
        message = "The webhook is paused. Resume it before you send a test."
        raise field_problem("id", message, 409)
    made = Delivery.objects.get(pk=send_test_delivery(webhook).pk)
    location = reverse("api-webhook-delivery", args=[pk, made.pk])
    return json_response(delivery_json(made), 201, Location=location)


def delete_webhook_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete a webhook with its deliveries."""
    delete_webhook(get_webhook(user, pk))
    return no_content()


def list_deliveries(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The deliveries of a webhook, the newest first."""
    rows = get_webhook(user, pk).deliveries.all()
    return json_response(paginate_by_id(rows, query, delivery_json))


def read_delivery(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """One delivery; `number` is its id."""
    return json_response(delivery_json(get_delivery(user, pk, number)))


def send_delivery_again(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Send a delivery again, under the same id."""
    delivery = get_delivery(user, pk, number)
    if not resend_delivery(delivery):
        message = "An attempt is in progress. Wait until it has finished."
        raise field_problem("number", message, 409)
    return json_response(delivery_json(get_delivery(user, pk, number)))


ONE = "webhooks/{id}"
ROUTES = [
    Route(
        "GET",
        "webhooks",
        list_webhooks,
        "List webhooks",
        Page[WebhookShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "webhooks",
        create_webhook,
        "Create a webhook",
        WebhookShape,
        body=NewWebhookBody,
        status=201,
        is_idempotent=True,
    ),
    Route("GET", ONE, read_webhook, "Read a webhook", WebhookShape, has_etag=True),
    Route(
        "PATCH",
        ONE,
        change_webhook,
        "Change a webhook",
        WebhookShape,
        body=WebhookBody,
        has_etag=True,
    ),
    Route("DELETE", ONE, delete_webhook_for_user, "Delete a webhook", status=204),
    Route("POST", f"{ONE}/pause", pause_webhook, "Pause a webhook", WebhookShape),
    Route("POST", f"{ONE}/resume", resume_webhook, "Resume a webhook", WebhookShape),
    Route("POST", f"{ONE}/rotate", rotate_webhook, "Renew the secret", WebhookShape),
    Route(
        "POST",
        f"{ONE}/test",
        send_webhook_test,
        "Send a test",
        DeliveryShape,
        status=201,
        is_idempotent=True,
        errors=(409,),
    ),
    Route(
        "GET",
        f"{ONE}/deliveries",
        list_deliveries,
        "List deliveries",
        Page[DeliveryShape],
        query=PageQuery,
    ),
    Route(
        "GET",
        f"{ONE}/deliveries/{{number}}",
        read_delivery,
        "Read a delivery",
        DeliveryShape,
    ),
    Route(
        "POST",
        f"{ONE}/deliveries/{{number}}/resend",
        send_delivery_again,
        "Send a delivery again",
        DeliveryShape,
        errors=(409,),
    ),
]
