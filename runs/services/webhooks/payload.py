"""The payload of a webhook: a link to the run, and none of its text."""

import json
from datetime import UTC
from typing import Any

from django.conf import settings

from runs.models import Delivery, Webhook, WebhookEvent
from runs.models.webhooks import SCORE_EVENT
from runs.store.outbox import EVENT_BY_STATUS
from tools.text.translatable import decode_stored_text

MAX_ERROR_CHARS = 500
"""Maximum length of an error message."""
CHAT_ESCAPES = str.maketrans("<>", "‹›")
"""In a chat `<!channel>` would notify everybody."""

STATUS_BY_EVENT = {str(event): status for status, event in EVENT_BY_STATUS.items()}
"""The status of a run by its event."""

EVENT_VERBS: dict[str, str] = {
    WebhookEvent.NEEDS_APPROVAL: "awaits an approval",
    WebhookEvent.NEEDS_DECISION: "awaits a decision",
    WebhookEvent.SUCCEEDED: "succeeded",
    WebhookEvent.LIMIT_REACHED: "reached a limit",
    WebhookEvent.FAILED: "failed",
    WebhookEvent.CANCELED: "was canceled",
}
"""For text messages, which are always in English: `run 7 succeeded`."""


def get_message_id(delivery: Delivery) -> str:
    """Return the id of a message: unique, and the same at each attempt."""
    return f"msg_{delivery.pk}_{int(delivery.created_at.timestamp())}"


def build_delivery_body(delivery: Delivery) -> bytes:
    """Return the body, the same at each attempt."""
    is_text = delivery.webhook.shape == Webhook.Shape.TEXT
    made = (
        {"text": format_delivery_text(delivery)}
        if is_text
        else build_event_json(delivery)
    )
    return json.dumps(made, ensure_ascii=False).encode()


def build_event_json(delivery: Delivery) -> dict[str, Any]:
    at = delivery.created_at.astimezone(UTC)
    return {
        "type": delivery.event,
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "data": build_event_data(delivery),
    }


def build_event_data(delivery: Delivery) -> dict[str, Any]:
    run, facts = delivery.run, delivery.facts
    if run is None:
        return {
            "webhook": delivery.webhook.name,
            "url": get_delivery_page_url(delivery),
        }
    scores = (
        {"rule": facts["rule"], "failed": facts["failed"]}
        if delivery.event == SCORE_EVENT
        else None
    )
    failed = facts["error_code"] or facts["error_message"]
    return {
        "id": run.pk,
        "url": get_delivery_page_url(delivery),
        "status": STATUS_BY_EVENT.get(delivery.event) or facts["status"],
        "stop_reason": facts["stop_reason"] or None,
        "error": {
            "code": facts["error_code"],
            "message": decode_stored_text(facts["error_message"])[:MAX_ERROR_CHARS],
        }
        if failed
        else None,
        "agent": run.agent.slug,
        "version": run.version.number if run.version else None,
        "owner": run.owner.get_username(),
        "usage": {
            "input_tokens": facts["input_tokens"],
            "output_tokens": facts["output_tokens"],
            "cost": float(facts["cost"]),
            "model_calls": facts["model_calls"],
        },
        **({"scores": scores} if scores else {}),
    }


def format_delivery_text(delivery: Delivery) -> str:
    """Return the event as one sentence, for chats."""
    run = delivery.run
    if run is None:
        said = f"Test of the webhook {delivery.webhook.name}."
    else:
        said = f"{run.agent.name}: run {run.pk} {describe_event(delivery)}"
        why = decode_stored_text(delivery.facts["error_message"])[:MAX_ERROR_CHARS]
        said += f". {why}" if why else "."
    return f"{said} {get_delivery_page_url(delivery)}".translate(CHAT_ESCAPES)


def describe_event(delivery: Delivery) -> str:
    """Return what happened to the run, as the rest of a sentence."""
    if delivery.event == SCORE_EVENT:
        names = ", ".join(delivery.facts["failed"])
        return f"failed {names} (rule {delivery.facts['rule']})"
    return EVENT_VERBS[delivery.event]


def get_delivery_page_url(delivery: Delivery) -> str:
    if delivery.run_id is None:
        return f"{settings.PUBLIC_URL}/webhooks/{delivery.webhook_id}/"
    return f"{settings.PUBLIC_URL}/runs/{delivery.run_id}/"
