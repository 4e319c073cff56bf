"""What a webhook is sent."""

import json

import pytest

from runs.models import Delivery, WebhookEvent
from runs.services.webhooks.payload import build_delivery_body, get_message_id
from tests.make import (
    make_agent,
    make_delivery,
    make_run,
    make_user,
    make_version,
    make_webhook,
)
from tools.text.translatable import encode_stored_text, translatable

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def site(settings):
    """Have an address that people type in."""
    settings.PUBLIC_URL = "https://agents.example"


def message(delivery: Delivery) -> dict:
    return json.loads(build_delivery_body(delivery))


def test_an_event_says_what_became_of_the_run_and_nothing_it_said():
    agent = make_agent(make_user("ann"), name="Helpdesk")
    run = make_run(
        agent=agent,
        status="failed",
        version=make_version(agent),
        inputs={"input": "the secret plan"},
        title="the secret plan",
        input_tokens=7,
        output_tokens=3,
        cost="0.250000",
        model_calls=2,
    )
    delivery = make_delivery(make_webhook(agent.owner), run)

    body = message(delivery)
    at = delivery.created_at
    assert body == {
        "type": "run.failed",
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "data": {
            "id": run.pk,
            "url": f"https://agents.example/runs/{run.pk}/",
            "status": "failed",
            "stop_reason": None,
            "error": {"code": "refused", "message": "The server said no."},
            "agent": "helpdesk",
            "version": 1,
            "owner": "ann",
            "usage": {
                "input_tokens": 7,
                "output_tokens": 3,
                "cost": 0.25,
                "model_calls": 2,
            },
        },
    }


def test_a_run_of_no_version_that_went_well_has_neither_error_nor_version():
    run = make_run(status="succeeded", output="the secret answer")
    delivery = make_delivery(run=run, event=WebhookEvent.SUCCEEDED)

    data = message(delivery)["data"]
    assert (data["error"], data["version"], data["status"]) == (None, None, "succeeded")
    assert "secret" not in json.dumps(data)


def test_an_event_tells_of_its_moment_though_the_run_went_on():
    run = make_run(status="limit_reached")
    delivery = make_delivery(run=run, event=WebhookEvent.LIMIT_REACHED)
    run.status, run.stop_reason, run.ended_at = "queued", "", None
    run.save()

    data = message(delivery)["data"]
    assert (data["status"], data["stop_reason"]) == ("limit_reached", "iterations")


def test_a_long_error_is_cut():
    run = make_run(status="failed", error_message="x" * 9_000)

    assert len(message(make_delivery(run=run))["data"]["error"]["message"]) == 500


@pytest.mark.parametrize("shape", ["event", "text"])
def test_a_translated_error_is_sent_in_english(shape):
    why = translatable("The provider %(provider)s was deleted.", provider="'mine'")
    run = make_run(status="failed", error_message=why)
    delivery = make_delivery(make_webhook(run.owner, shape=shape), run)
    delivery.facts["error_message"] = encode_stored_text(why)

    said = build_delivery_body(delivery).decode()

    assert "The provider 'mine' was deleted." in said
    assert "%(provider)s" not in said


def test_a_chat_gets_a_line_with_the_address():
    agent = make_agent(name="<!channel> Helpdesk & Co")
    run = make_run(agent=agent, status="failed")
    delivery = make_delivery(make_webhook(agent.owner, shape="text"), run)

    assert message(delivery) == {
        "text": f"‹!channel› Helpdesk & Co: run {run.pk} failed. The server said no. "
        f"https://agents.example/runs/{run.pk}/"
    }


@pytest.mark.parametrize("shape", ["event", "text"])
def test_a_test_leads_to_its_webhook(shape):
    webhook = make_webhook(name="Night watch", shape=shape)

    said = build_delivery_body(make_delivery(webhook)).decode()
    assert f"https://agents.example/webhooks/{webhook.pk}/" in said
    assert "Night watch" in said


def test_no_two_messages_have_one_id():
    first, second = make_delivery(), make_delivery()

    assert get_message_id(first) != get_message_id(second)
    assert get_message_id(first) == get_message_id(Delivery.objects.get(pk=first.pk))
