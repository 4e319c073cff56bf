"""Requests at an incoming webhook: what starts a run, once, and what is recorded."""

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Hook, HookRequest, Run
from runs.services.hooks import manage
from runs.services.hooks.manage import (
    prune_hook_requests,
    rotate_hook_secret,
)
from runs.services.runs.delete import delete_runs
from runs.services.webhooks.sign import get_current_secrets
from tests.make import make_agent, make_hook, make_user
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db


def send(hook: Hook, body: Any, *, id: str = "msg_1", secret: str = "", **headers):
    """Send a body signed as Standard Webhooks say, and return the response."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    at = int(time.time())
    key = base64.b64decode((secret or get_current_secrets(hook)[0])[6:])
    digest = hmac.new(key, f"{id}.{at}.".encode() + raw, hashlib.sha256).digest()
    signed = {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }
    return Client(enforce_csrf_checks=True).post(
        f"/in/{hook.key}/",
        raw,
        content_type="application/json",
        headers={**signed, **headers},
    )


def outcomes(hook: Hook) -> list[tuple[str, int]]:
    return list(hook.requests.order_by("pk").values_list("outcome", "count"))


def test_a_signed_request_starts_a_run_of_the_owner():
    hook = make_hook(inputs={"input": "Say {/text}"})

    answer = send(hook, {"text": "hello"})

    run = Run.objects.get()
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "started", "run": run.pk},
    )
    assert (run.owner, run.source, run.inputs) == (
        hook.owner,
        "hook",
        {"input": "Say hello"},
    )
    assert hook.requests.get().run == run


def test_a_message_that_arrives_twice_starts_one_run():
    hook = make_hook()

    first, second = send(hook, {"text": "a"}), send(hook, {"text": "a"})

    assert second.json() == {**first.json(), "status": "duplicate"}
    assert Run.objects.count() == 1
    assert outcomes(hook) == [("started", 1), ("duplicate", 1)]


@pytest.mark.django_db(transaction=True)
def test_a_message_that_arrives_at_once_starts_one_run():
    hook = make_hook()

    at_once(*[lambda: send(hook, {"text": "a"})] * 4)

    assert Run.objects.count() == 1
    assert hook.requests.filter(outcome="started").count() == 1
    duplicates = hook.requests.filter(outcome="duplicate")
    assert sum(duplicates.values_list("count", flat=True)) == 3


def test_equal_duplicates_are_one_row():
    hook = make_hook()
    for _ in range(4):
        send(hook, {"text": "a"})

    assert outcomes(hook) == [("started", 1), ("duplicate", 3)]
    send(hook, {"text": "b"}, id="b")
    send(hook, {"text": "b"}, id="b")
    assert outcomes(hook)[2:] == [("started", 1), ("duplicate", 1)]


def test_the_same_id_at_another_hook_is_another_message():
    for hook in (make_hook(), make_hook()):
        assert send(hook, {"text": "a"}).json()["status"] == "started"


def test_a_wrong_signature_is_refused_and_recorded_once_a_minute():
    hook = make_hook()
    for _ in range(3):
        answer = send(hook, {"text": "a"}, secret="whsec_" + "A" * 44)

    assert answer.status_code == 401
    assert "signature is wrong" in answer.json()["error"]
    assert outcomes(hook) == [("refused", 3)]
    assert not Run.objects.exists()


def test_a_refused_message_may_be_sent_again():
    hook = make_hook()
    agent = hook.agent
    agent.archived_at = timezone.now()
    agent.save()
    refused = send(hook, {"text": "a"})
    agent.archived_at = None
    agent.save()

    assert refused.status_code == 422
    assert "archived" in refused.json()["error"]
    assert send(hook, {"text": "a"}).json()["status"] == "started"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param(b"{", 400, "not valid JSON", id="not-json"),
        pytest.param({"other": 1}, 422, "finds nothing", id="missing-value"),
        pytest.param({"text": ""}, 422, "Enter a message", id="empty-message"),
        pytest.param(b"x" * 1_000_001, 413, "1,000,000 bytes", id="too-large"),
    ],
)
def test_bad_bodies_are_refused_with_a_sentence(body, status, says):
    answer = send(make_hook(), body)

    assert (answer.status_code, answer.headers["Content-Type"]) == (
        status,
        "application/json",
    )
    assert says in answer.json()["error"]
    assert not Run.objects.exists()


def test_a_paused_hook_refuses():
    answer = send(make_hook(is_on=False), {"text": "a"})

    assert answer.status_code == 403
    assert "paused" in answer.json()["error"]


def test_a_hook_of_a_disabled_account_refuses():
    hook = make_hook(make_user(is_active=False))

    assert send(hook, {"text": "a"}).status_code == 422
    assert not Run.objects.exists()


def test_a_hook_whose_owner_lost_the_agent_refuses():
    hook = make_hook(make_user(), agent=make_agent())

    answer = send(hook, {"text": "a"})

    assert answer.status_code == 422
    assert "cannot use the agent" in answer.json()["error"]


def test_too_many_runs_are_refused_for_now(settings):
    settings.USER_RUNS = 1
    hook = make_hook()
    send(hook, {"text": "a"}, id="a")

    answer = send(hook, {"text": "b"}, id="b")

    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_a_request_that_does_not_meet_the_condition_is_ignored():
    hook = make_hook(only_pointer="/action", only_value="opened")

    answer = send(hook, {"action": "closed", "text": "a"})

    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert "'closed'" in hook.requests.get().reason


def test_an_unknown_address_is_not_found():
    assert Client().post("/in/nothing/").status_code == 404
    assert Client().get(f"/in/{make_hook().key}/").status_code == 405


def test_after_a_rotation_both_secrets_work_for_a_day():
    hook = make_hook()
    old = get_current_secrets(hook)[0]
    rotate_hook_secret(hook)
    hook.refresh_from_db()

    assert send(hook, {"text": "a"}, id="a", secret=old).status_code == 200
    Hook.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))
    assert send(hook, {"text": "a"}, id="b", secret=old).status_code == 401
    assert send(hook, {"text": "a"}, id="c").status_code == 200


def test_slack_gets_its_challenge_and_its_repetitions_start_nothing():
    hook = make_hook(scheme="slack", secret="the signing secret of slack")

    def post(body: dict[str, Any], at: int):
        raw = json.dumps(body).encode()
        digest = hmac.new(
            b"the signing secret of slack", f"v0:{at}:".encode() + raw, hashlib.sha256
        )
        signed = {
            "x-slack-request-timestamp": str(at),
            "x-slack-signature": f"v0={digest.hexdigest()}",
        }
        client = Client()
        return client.post(
            f"/in/{hook.key}/", raw, content_type="application/json", headers=signed
        )

    now = int(time.time())
    challenge = {"type": "url_verification", "challenge": 'a"b'}
    assert post(challenge, now).json() == {"challenge": 'a"b'}
    event = {"event_id": "Ev1", "text": "hi"}
    assert post(event, now).json()["status"] == "started"
    assert post(event, now - 1).json()["status"] == "duplicate"


def test_the_trace_of_the_sender_reaches_the_run():
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    send(make_hook(), {"text": "a"}, traceparent=header)

    assert Run.objects.get().traceparent == header


def test_the_log_is_pruned_by_age_and_number(monkeypatch):
    monkeypatch.setattr(manage, "MAX_PER_HOOK", 2)
    hook, now = make_hook(), timezone.now()
    for days in (40, 3, 2, 1):
        HookRequest.objects.create(
            hook=hook, outcome="ignored", created_at=now - timedelta(days=days)
        )

    assert prune_hook_requests() == 2
    assert hook.requests.count() == 2


def test_a_flood_does_not_make_a_message_new_again(monkeypatch):
    monkeypatch.setattr(manage, "MAX_PER_HOOK", 2)
    hook, now = make_hook(), timezone.now()
    send(hook, {"text": "a"})
    for _ in range(5):
        HookRequest.objects.create(hook=hook, outcome="ignored", created_at=now)

    assert prune_hook_requests() == 3
    assert send(hook, {"text": "a"}).json()["status"] == "duplicate"
    assert Run.objects.count() == 1
    old = now - timedelta(days=31)
    HookRequest.objects.filter(outcome="started").update(created_at=old)
    prune_hook_requests()
    assert not hook.requests.filter(outcome="started").exists()


def test_the_log_outlives_the_run():
    hook = make_hook()
    send(hook, {"text": "a"})
    Run.objects.update(status="canceled", ended_at=timezone.now())
    delete_runs(Run.objects.all(), by=hook.owner)

    assert hook.requests.get().run is None
