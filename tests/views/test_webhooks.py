"""Webhooks: list, form, the page of one, and what can be done there."""

import html
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from runs.models import Delivery, Webhook
from runs.services.webhooks.sign import (
    build_signature_headers,
    generate_webhook_secret,
    get_current_secrets,
)
from tests.make import (
    make_agent,
    make_delivery,
    make_run,
    make_user,
    make_webhook,
)

pytestmark = pytest.mark.django_db

PORT = settings.OWN_PORTS[0]
GOOD = {
    "name": "Night watch",
    "url": "https://hooks.example/T0/B0/xyz?key=1",
    "shape": "event",
    "events": ["run.failed", "run.needs_approval"],
    "agent": "",
}


def page_of(client, address: str) -> str:
    return client.get(address).content.decode()


def test_an_empty_list_explains_webhooks(client, ann):
    assert "No webhooks yet" in page_of(client, "/webhooks/")


def test_the_list_shows_states_and_hides_webhooks_of_others(client, ann):
    make_webhook(ann, name="Good one")
    make_webhook(ann, failing_since=timezone.now() - timedelta(hours=3))
    make_webhook(ann, is_on=False)
    make_webhook(name="Not mine")
    page = re.sub("<[^>]+>", "", page_of(client, "/webhooks/"))

    assert "Good one" in page
    assert "Failing for 3 h" in page
    assert "Paused" in page
    assert "Not mine" not in page


def test_the_list_shows_the_time_of_the_last_event(client, ann):
    make_webhook(ann)
    assert "None yet" in page_of(client, "/webhooks/")

    make_delivery(make_webhook(ann), created_at=timezone.now() - timedelta(hours=3))
    page = re.sub("<[^>]+>", "", page_of(client, "/webhooks/"))

    assert "Last event" in page
    assert "Last event 3 h ago" in page


def test_a_superuser_sees_all(client):
    client.force_login(make_user(is_superuser=True))
    make_webhook(make_user("bea"), name="Hers")

    page = page_of(client, "/webhooks/")
    assert "Hers" in page
    assert "bea" in page


def test_the_account_menu_links_to_webhooks(client, ann):
    assert 'href="/webhooks/"' in page_of(client, "/")


def test_a_new_webhook_shows_its_secret_once(client, ann):
    answer = client.post("/webhooks/new/", GOOD)

    webhook = Webhook.objects.get()
    secret = get_current_secrets(webhook)[0]
    assert answer.headers["Location"] == f"/webhooks/{webhook.pk}/"
    assert (webhook.owner, webhook.url()) == (ann, GOOD["url"])
    assert webhook.host == "https://hooks.example"
    assert set(webhook.events) == set(GOOD["events"])
    assert secret in page_of(client, f"/webhooks/{webhook.pk}/")
    assert secret not in page_of(client, f"/webhooks/{webhook.pk}/")


def test_the_page_of_another_webhook_shows_no_secret(client, ann):
    client.post("/webhooks/new/", GOOD)
    other = make_webhook(ann)

    assert "whsec_" not in page_of(client, f"/webhooks/{other.pk}/").replace(
        'removeprefix("whsec_")', ""
    )


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        pytest.param("name", "", "Enter a name.", id="no-name"),
        pytest.param("url", "", "Enter a value for", id="no-address"),
        pytest.param("url", "no url", "is not a valid web address", id="no-url"),
        pytest.param("url", "ftp://x/", "is not a valid web address", id="scheme"),
        pytest.param(
            "url", "https://x/?a=b c", "is not a valid web address", id="space"
        ),
        pytest.param(
            "url", "https://x/#a", "is not a valid web address", id="fragment"
        ),
        pytest.param("url", "http://u:pw@h/", "Remove the user name", id="password"),
        pytest.param("url", "http://169.254.169.254/", "hand out cred", id="metadata"),
        pytest.param(
            "url", "http://metadata.goog/x", "hand out cred", id="metadata-name"
        ),
        pytest.param("url", "http://2852039166/", "hand out cred", id="decimal"),
        pytest.param(
            "url",
            "http://10.1.2.3/hook",
            "AGENTSITE_PRIVATE_HOSTS=webhook=10.1.2.3:80",
            id="private",
        ),
        pytest.param("url", "https://[::1]/", "is not public", id="loopback-v6"),
        pytest.param("url", "http://localhost:9/", "is not public", id="localhost"),
        pytest.param(
            "url",
            f"http://localhost:{PORT}/",
            "application&#x27;s own",
            id="own",
        ),
        pytest.param("events", [], "Select at least one event.", id="no-event"),
        pytest.param("events", ["run.x"], "Select a valid choice", id="event"),
        pytest.param("shape", "xml", "Select a valid choice", id="shape"),
    ],
)
def test_invalid_input_is_explained_and_kept_in_the_form(
    client, ann, field, value, says
):
    answer = client.post("/webhooks/new/", GOOD | {field: value})

    page = answer.content.decode()
    assert answer.status_code == 200
    assert says in page
    assert field == "name" or "Night watch" in page
    assert not Webhook.objects.exists()


def test_a_private_address_allowed_by_the_operator_is_accepted(client, ann, settings):
    settings.PRIVATE_HOSTS = "webhook=10.1.2.3"
    client.post("/webhooks/new/", GOOD | {"url": "http://10.1.2.3/hook"})

    assert Webhook.objects.get().host == "http://10.1.2.3"


def test_only_a_superuser_may_select_the_runs_of_all_users(client, ann):
    client.post("/webhooks/new/", GOOD | {"everything": "on"})
    assert not Webhook.objects.get().everything

    client.force_login(make_user(is_superuser=True))
    client.post("/webhooks/new/", GOOD | {"everything": "on"})
    assert Webhook.objects.filter(everything=True).count() == 1


def test_an_agent_one_may_not_use_cannot_be_chosen(client, ann):
    mine, other = make_agent(ann), make_agent()
    refused = client.post("/webhooks/new/", GOOD | {"agent": other.pk})
    client.post("/webhooks/new/", GOOD | {"agent": mine.pk})

    assert "Select a valid choice" in refused.content.decode()
    assert Webhook.objects.get().agent == mine


def test_editing_keeps_owner_and_secret(client):
    webhook = make_webhook()
    secret = webhook.sealed_secret
    client.force_login(make_user(is_superuser=True))
    form = page_of(client, f"/webhooks/{webhook.pk}/edit/")
    client.post(f"/webhooks/{webhook.pk}/edit/", GOOD)

    changed = Webhook.objects.get()
    assert "https://a.example/hook" not in form
    assert 'placeholder="https://a.example/…"' in form
    assert (changed.name, changed.url()) == ("Night watch", GOOD["url"])
    assert (changed.owner, changed.sealed_secret) == (webhook.owner, secret)


def test_an_empty_url_keeps_the_stored_one(client, ann):
    webhook = make_webhook(ann)
    client.post(f"/webhooks/{webhook.pk}/edit/", GOOD | {"url": ""})

    changed = Webhook.objects.get()
    assert (changed.name, changed.url()) == ("Night watch", "https://a.example/hook")


def test_an_unreadable_url_has_to_be_entered_again(client, ann):
    webhook = make_webhook(ann)
    Webhook.objects.update(sealed_url="not sealed with our key")
    refused = client.post(f"/webhooks/{webhook.pk}/edit/", GOOD | {"url": ""})

    assert "placeholder" not in refused.content.decode().split('name="url"')[1][:300]
    assert Webhook.objects.get().name == webhook.name


def test_an_archived_agent_stays_selected(client, ann):
    agent = make_agent(ann, archived_at=timezone.now())
    webhook = make_webhook(ann, agent=agent)
    client.post(f"/webhooks/{webhook.pk}/edit/", GOOD | {"agent": agent.pk})

    assert Webhook.objects.get().agent == agent


def test_the_page_describes_each_delivery(client, ann):
    webhook = make_webhook(ann)
    run = make_run(ann, status="failed")
    make_delivery(
        webhook,
        run,
        attempts=3,
        response_status=500,
        response_text="<b>oops</b>",
        error="The server responded with 500.",
        duration_ms=34,
        available_at=timezone.now() + timedelta(minutes=5, seconds=30),
    )
    page = page_of(client, f"/webhooks/{webhook.pk}/")
    words = " ".join(re.sub("<[^>]+>", "", page).split())

    assert f'href="/runs/{run.pk}/"' in page
    assert "The server responded with 500." in words
    assert "3 attempts · Last attempt took 34 ms · Next attempt in 5 min" in words
    assert "&lt;b&gt;oops&lt;/b&gt;" in page


def test_an_overdue_attempt_is_shown_as_due(client, ann):
    webhook, late = make_webhook(ann), timezone.now() - timedelta(seconds=90)
    make_delivery(webhook, attempts=2, available_at=late)
    page = re.sub("<[^>]+>", "", page_of(client, f"/webhooks/{webhook.pk}/"))

    assert "Next attempt due 1 min ago" in page


def test_the_example_on_the_page_verifies_signatures(client, ann):
    webhook = make_webhook(ann)
    page = page_of(client, f"/webhooks/{webhook.pk}/")
    code = html.unescape(re.search(r"<pre[^>]*>(import.*?)</pre>", page, re.S)[1])
    example: dict[str, Any] = {}
    exec(code, example)
    (key,) = get_current_secrets(webhook)
    now = int(time.time())

    def is_genuine(*, keys=(key,), at=now, body=b"{}"):
        sent = build_signature_headers(list(keys), id="msg_1", timestamp=at, body=b"{}")
        return example["is_genuine"](key, sent, body)

    assert is_genuine()
    assert is_genuine(keys=(generate_webhook_secret(), key))
    assert not is_genuine(keys=(generate_webhook_secret(),))
    assert not is_genuine(body=b"[]")
    assert not is_genuine(at=now - 3600)


def test_the_part_polls_only_while_a_delivery_is_due(client, ann):
    webhook = make_webhook(ann)
    address = f"/webhooks/{webhook.pk}/"
    calm = client.get(address, headers={"hx-request": "true"}).content.decode()
    make_delivery(webhook)
    busy = client.get(address, headers={"hx-request": "true"}).content.decode()

    assert "<html" not in calm
    assert 'id="webhook-deliveries"' in calm
    assert "every 2s" not in calm
    assert "every 2s" in busy


def test_a_test_is_sent_unless_the_webhook_is_paused(client, ann):
    webhook = make_webhook(ann)
    client.post(f"/webhooks/{webhook.pk}/test/")
    Webhook.objects.update(is_on=False)
    answer = client.post(f"/webhooks/{webhook.pk}/test/", follow=True)

    assert [one.event for one in Delivery.objects.all()] == ["test"]
    assert "The webhook is paused." in answer.content.decode()


def test_a_delivery_is_sent_again(client, ann):
    webhook = make_webhook(ann)
    delivery = make_delivery(webhook, status="failed", attempts=7)
    client.post(f"/webhooks/{webhook.pk}/deliveries/{delivery.pk}/again/")

    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("waiting", 0)


def test_failed_deliveries_are_sent_again_together(client, ann):
    webhook = make_webhook(ann)
    failed = [make_delivery(webhook, status="failed") for _ in range(2)]
    done = make_delivery(webhook, status="delivered")
    other = make_delivery(make_webhook(ann), status="failed")
    assert "Send 2 failed again" in page_of(client, f"/webhooks/{webhook.pk}/")

    answer = client.post(f"/webhooks/{webhook.pk}/resend/", follow=True)

    assert "2 deliveries are sent again." in answer.text
    for delivery in (*failed, done, other):
        delivery.refresh_from_db()
    assert [one.status for one in failed] == ["waiting", "waiting"]
    assert (done.status, other.status) == ("delivered", "failed")
    assert "failed again" not in page_of(client, f"/webhooks/{webhook.pk}/")


def test_an_attempt_in_progress_is_not_sent_again(client, ann):
    webhook = make_webhook(ann)
    until = timezone.now() + timedelta(seconds=30)
    delivery = make_delivery(webhook, attempts=1, lease_until=until)
    address = f"/webhooks/{webhook.pk}/deliveries/{delivery.pk}/again/"

    assert (
        "An attempt is in progress"
        in client.post(address, follow=True).content.decode()
    )


def test_a_webhook_is_paused_and_resumed(client, ann):
    webhook = make_webhook(ann)
    for asked in ("0", "1"):
        client.post(f"/webhooks/{webhook.pk}/switch/", {"on": asked})
        assert Webhook.objects.get().is_on is (asked == "1")


def test_a_new_secret_is_shown_once_and_the_old_one_keeps_signing(client, ann):
    webhook = make_webhook(ann)
    old = get_current_secrets(webhook)[0]
    client.post(f"/webhooks/{webhook.pk}/rotate/")
    new = get_current_secrets(Webhook.objects.get())[0]
    first, second = (page_of(client, f"/webhooks/{webhook.pk}/") for _ in range(2))

    assert new != old
    assert new in first
    assert new not in second
    assert "also signs until" in second


def test_deleting_asks_for_confirmation(client, ann):
    webhook = make_webhook(ann, name="Night watch")
    address = f"/webhooks/{webhook.pk}/delete/"
    asked = page_of(client, address)
    assert Webhook.objects.exists()
    answer = client.post(address, follow=True).content.decode()

    assert "Delete Night watch?" in asked
    assert "Webhook Night watch deleted." in answer
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("get", ""),
        *(("get", path) for path in ("edit/", "delete/")),
        *(("post", path) for path in ("edit/", "test/", "switch/", "rotate/")),
        ("post", "resend/"),
        *(("post", path) for path in ("delete/", "deliveries/{delivery}/again/")),
    ],
)
def test_a_stranger_gets_404(client, ann, verb, path):
    delivery = make_delivery()
    address = f"/webhooks/{delivery.webhook_id}/{path}".format(delivery=delivery.pk)

    assert getattr(client, verb)(address).status_code == 404


def test_a_delivery_of_another_webhook_is_not_found(client, ann):
    other = make_delivery()
    address = f"/webhooks/{make_webhook(ann).pk}/deliveries/{other.pk}/again/"

    assert client.post(address).status_code == 404


def test_the_link_to_the_form_is_called_edit(client, ann):
    webhook = make_webhook(ann, name="Helpdesk")

    page = client.get(f"/webhooks/{webhook.pk}/").content.decode()
    form = client.get(f"/webhooks/{webhook.pk}/edit/").content.decode()

    assert re.search(r'href="/webhooks/\d+/edit/">.*?</svg>Edit</a>', page)
    assert "<h1>Edit Helpdesk</h1>" in form
