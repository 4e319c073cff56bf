"""What a webhook is sent: where to look, and no text of the run itself."""

import json
from datetime import UTC
from typing import Any

from django.conf import settings

from runs.models import Delivery, Event, Webhook
from runs.services.outbox import EVENTS

LONGEST = 500
"""Characters of an error's message."""
NO_COMMANDS = str.maketrans("<>", "‹›")
"""In a chat `<!channel>` would wake everybody."""

STATUSES = {str(event): status for status, event in EVENTS.items()}
"""The status of a run by the event that tells of it."""


def id_of(delivery: Delivery) -> str:
    """Return the name of a message: the same at each attempt, and of no other one."""
    return f"msg_{delivery.pk}_{int(delivery.created_at.timestamp())}"


def body_of(delivery: Delivery) -> bytes:
    """Return the body, the same at each attempt."""
    is_text = delivery.webhook.shape == Webhook.Shape.TEXT
    made = {"text": line_of(delivery)} if is_text else event_of(delivery)
    return json.dumps(made, ensure_ascii=False).encode()


def event_of(delivery: Delivery) -> dict[str, Any]:
    """Return the event as a program reads it."""
    at = delivery.created_at.astimezone(UTC)
    return {
        "type": delivery.event,
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "data": data_of(delivery),
    }


def data_of(delivery: Delivery) -> dict[str, Any]:
    """Return what the event is about."""
    run, facts = delivery.run, delivery.facts
    if run is None:
        return {"webhook": delivery.webhook.name, "url": page_of(delivery)}
    failed = facts["error_code"] or facts["error_message"]
    return {
        "id": run.pk,
        "url": page_of(delivery),
        "status": STATUSES[delivery.event],
        "stop_reason": facts["stop_reason"] or None,
        "error": {
            "code": facts["error_code"],
            "message": facts["error_message"][:LONGEST],
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
    }


def line_of(delivery: Delivery) -> str:
    """Return the event as a person reads it."""
    run = delivery.run
    if run is None:
        said = f"A test of the webhook {delivery.webhook.name}."
    else:
        said = f"{run.agent.name}: run {run.pk} {Event(delivery.event).label}"
        why = delivery.facts["error_message"][:LONGEST]
        said += f". {why}" if why else "."
    return f"{said} {page_of(delivery)}".translate(NO_COMMANDS)


def page_of(delivery: Delivery) -> str:
    """Return the address of the page to look at."""
    if delivery.run_id is None:
        return f"{settings.PUBLIC_URL}/webhooks/{delivery.webhook_id}/"
    return f"{settings.PUBLIC_URL}/runs/{delivery.run_id}/"
