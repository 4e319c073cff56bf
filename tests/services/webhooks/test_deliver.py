"""Delivering: taking, sending to a real server, trying again, giving up."""

import base64
import hashlib
import hmac
import json
import threading
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from runs.models import Delivery, Run, Webhook
from runs.services.webhooks import deliver as delivering
from runs.services.webhooks.deliver import (
    RETRY_DELAYS,
    RUN_NOT_VISIBLE_MESSAGE,
    WORKER_LOST_MESSAGE,
    attempt_delivery,
    claim_delivery,
    enqueue_due_deliveries,
    find_due_deliveries,
    record_attempt,
    send_delivery,
)
from runs.services.webhooks.post import PostResult
from runs.services.webhooks.sign import get_current_secrets, rotate_webhook_secret
from tests.fakes.listener import http, listener
from tests.make import make_delivery, make_run, make_user, make_webhook
from tests.support.threads import at_once
from tests.support.timing import wait_until
from tools.net.netguard import NetPolicy, parse_private_hosts

pytestmark = pytest.mark.django_db
really = pytest.mark.django_db(transaction=True)
"""For tests that send: they have threads, or give their connection back."""

HERE = NetPolicy(
    use="webhook", private_hosts=parse_private_hosts("webhook=127.0.0.1")["webhook"]
)
A_LITTLE = timedelta(milliseconds=10)
"""By how much the database's clock may be coarser than ours."""
LONG_AGO = "2020-01-01T00:00:00Z"
SAID_NO = PostResult(0.1, 500, "", "The server responded with 500.")
TAKEN = PostResult(0.1, 200, "ok")


@pytest.fixture(autouse=True)
def large_worker(monkeypatch):
    """Be a process with threads enough for all that it may send at once."""
    monkeypatch.setattr(delivering.worker_state, "threads", 50)


def sent(delivery: Delivery) -> Delivery:
    """Deliver it, and return it as it is then."""
    send_delivery(delivery.pk, policy=HERE)
    delivery.refresh_from_db()
    return delivery


def webhook_at(server, owner=None, **fields) -> Webhook:
    return make_webhook(owner, url=f"http://127.0.0.1:{server.port}/hook", **fields)


@really
def test_what_arrives_is_signed_and_says_where_to_look(settings):
    settings.PUBLIC_URL = "https://agents.example"
    with listener(answer=http("200 OK", body=b"thanks")) as server:
        webhook = webhook_at(server)
        run = make_run(webhook.owner, status="failed")
        delivery = sent(make_delivery(webhook, run))

    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")[1:]
    headers = dict(line.split(": ", 1) for line in lines)
    key = base64.b64decode(get_current_secrets(webhook)[0].removeprefix("whsec_"))
    message = b".".join(
        [
            headers["webhook-id"].encode(),
            headers["webhook-timestamp"].encode(),
            body,
        ]
    )
    digest = base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert json.loads(body)["data"]["url"] == f"https://agents.example/runs/{run.pk}/"
    assert (delivery.status, delivery.attempts) == ("delivered", 1)
    assert (delivery.response_status, delivery.response_text, delivery.error) == (
        200,
        "thanks",
        "",
    )
    assert delivery.ended_at is not None


@really
def test_a_secret_that_was_rotated_signs_beside_the_new_one():
    with listener(answer=http("200 OK")) as server:
        webhook = webhook_at(server)
        rotate_webhook_secret(webhook)
        sent(make_delivery(webhook))

    line = next(x for x in server.heard[0].split(b"\r\n") if b"-signature" in x)
    assert line.count(b"v1,") == 2


@really
def test_two_wakeups_deliver_once():
    with listener(answer=http("200 OK")) as server:
        delivery = make_delivery(webhook_at(server))
        at_once(*[lambda: send_delivery(delivery.pk, policy=HERE)] * 2)

    assert server.knocks == 1


@really
def test_two_workers_that_look_at_once_take_it_once():
    delivery = make_delivery()
    found = []
    at_once(*[lambda: found.append(claim_delivery(delivery.pk))] * 2)

    assert sum(one is not None for one in found) == 1


@pytest.mark.parametrize(("attempts", "pause"), [*enumerate(RETRY_DELAYS)])
def test_what_was_refused_is_tried_again_later_and_later(attempts, pause):
    delivery = make_delivery(attempts=attempts)
    before = timezone.now() - A_LITTLE
    record_attempt(claim_delivery(delivery.pk), SAID_NO)
    after = timezone.now() + A_LITTLE

    delivery.refresh_from_db()
    longest, shortest = (timedelta(seconds=pause * by) for by in (1.1, 0.9))
    assert before + shortest <= delivery.available_at <= after + longest
    assert (delivery.status, delivery.response_status) == ("waiting", 500)
    assert claim_delivery(delivery.pk) is None


def test_what_was_refused_at_the_last_attempt_is_given_up():
    delivery = make_delivery(attempts=len(RETRY_DELAYS))
    record_attempt(claim_delivery(delivery.pk), SAID_NO)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("failed", 7)
    assert delivery.error == "The server responded with 500."


@really
def test_what_can_never_work_is_given_up_at_once():
    delivery = sent(make_delivery(make_webhook(url="http://10.0.0.1/")))

    assert (delivery.status, delivery.attempts) == ("failed", 1)
    assert "10.0.0.1 is not public" in delivery.error


@really
def test_the_message_is_the_same_at_each_attempt():
    with listener(answer=http("500 Oh")) as server:
        webhook = webhook_at(server)
        delivery = make_delivery(webhook, make_run(webhook.owner, status="failed"))
        sent(delivery)
        Run.objects.update(error_code="other", seq=99)
        Delivery.objects.update(available_at=LONG_AGO)
        sent(delivery)

    ids, bodies = zip(
        *[
            (h.split(b"webhook-id: ")[1].split(b"\r")[0], h.split(b"\r\n\r\n")[1])
            for h in server.heard
        ],
        strict=True,
    )
    assert len(server.heard) == 2
    assert len(set(ids)) == len(set(bodies)) == 1


def test_whoever_died_with_it_leaves_it_to_the_next():
    delivery = make_delivery()
    assert claim_delivery(delivery.pk) is not None
    assert claim_delivery(delivery.pk) is None
    Delivery.objects.update(lease_until=LONG_AGO)

    assert claim_delivery(delivery.pk).attempts == 2


def test_who_dies_with_it_every_time_is_not_followed_for_ever():
    delivery = make_delivery(attempts=7, lease_until=LONG_AGO)

    assert claim_delivery(delivery.pk) is None
    delivery.refresh_from_db()
    assert (delivery.status, delivery.error) == ("failed", WORKER_LOST_MESSAGE)


def test_who_comes_late_writes_nothing():
    delivery = make_delivery()
    late = claim_delivery(delivery.pk)
    Delivery.objects.update(lease_until=LONG_AGO)
    record_attempt(claim_delivery(delivery.pk), TAKEN)
    record_attempt(late, SAID_NO)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.error) == ("delivered", "")


def test_a_paused_webhook_is_sent_nothing_until_it_goes_on():
    delivery = make_delivery(make_webhook(is_on=False))

    assert claim_delivery(delivery.pk) is None
    assert find_due_deliveries(9) == []
    Webhook.objects.update(is_on=True)
    assert find_due_deliveries(9) == [delivery.pk]


def test_one_address_gets_few_at_once_and_one_that_fails_one():
    webhook = make_webhook()
    first, second, third = (make_delivery(webhook).pk for _ in range(3))

    assert [claim_delivery(pk) is not None for pk in (first, second, third)] == [
        1,
        1,
        0,
    ]
    record_attempt(Delivery.objects.get(pk=first), SAID_NO)
    assert claim_delivery(third) is None


@really
def test_an_address_that_hangs_keeps_no_other_waiting():
    over = threading.Event()
    with (
        listener(answer=lambda sock: over.wait(20)) as hung,
        listener(answer=http("200 OK")) as well,
    ):
        stuck = make_delivery(webhook_at(hung))
        waits = threading.Thread(
            target=at_once, args=[lambda: send_delivery(stuck.pk, policy=HERE)]
        )
        waits.start()
        wait_until(lambda: hung.knocks == 1)
        good = sent(make_delivery(webhook_at(well)))
        stuck.refresh_from_db()
        over.set()
        waits.join()

    assert (good.status, stuck.status) == ("delivered", "waiting")


@really
def test_who_has_sent_one_goes_on_with_what_is_due():
    with listener(answer=http("200 OK")) as server:
        webhook = webhook_at(server)
        rows = [make_delivery(webhook) for _ in range(4)]
        make_delivery(webhook, available_at=timezone.now() + timedelta(hours=1))
        send_delivery(rows[0].pk, policy=HERE)

    assert server.knocks == 4
    assert Delivery.objects.filter(status="waiting").count() == 1


@really
def test_a_long_edit_session_ends_with_a_wakeup_for_the_next(monkeypatch):
    rung = []
    monkeypatch.setattr(delivering, "MAX_SENDING_SECONDS", 0.0)
    monkeypatch.setattr(
        "runs.wakeup._send_task", lambda task, key, *_: rung.append(key)
    )
    with listener(answer=http("200 OK")) as server:
        first, second = (make_delivery(webhook_at(server)) for _ in range(2))
        send_delivery(first.pk, policy=HERE)

    assert (server.knocks, rung) == (1, [second.pk])


def test_a_process_sends_few_at_once(monkeypatch):
    monkeypatch.setattr(delivering.worker_state, "threads", 8)
    with (
        delivering.delivery_slots.acquire_slot() as first,
        delivering.delivery_slots.acquire_slot() as second,
        delivering.delivery_slots.acquire_slot() as third,
    ):
        assert (first, second, third) == (True, True, False)
        delivery = sent(make_delivery())
    assert (delivery.attempts, delivering.delivery_slots.slots_in_use) == (0, 0)


def test_a_worker_that_ends_begins_nothing():
    delivering.worker_state.is_stopping.set()
    try:
        assert sent(make_delivery()).attempts == 0
    finally:
        delivering.worker_state.is_stopping.clear()


def test_those_that_work_are_sent_first():
    now = timezone.now()
    make_delivery(make_webhook(failing_since=LONG_AGO), available_at=LONG_AGO)
    lately = make_delivery(make_webhook(failing_since=now - timedelta(minutes=1)))
    well = make_delivery()

    assert find_due_deliveries(2) == [well.pk, lately.pk]


def test_a_sweep_rings_for_what_is_due_once_in_a_while():
    make_delivery(enqueued_at=timezone.now())
    lost = make_delivery(enqueued_at=LONG_AGO)
    make_delivery(available_at=timezone.now() + timedelta(hours=1))

    assert enqueue_due_deliveries() == 1
    lost.refresh_from_db()
    assert lost.enqueued_at > timezone.now() - timedelta(seconds=9)
    assert enqueue_due_deliveries() == 0


def test_a_webhook_fails_from_its_first_failure_until_one_works():
    webhook = make_webhook()
    record_attempt(claim_delivery(make_delivery(webhook).pk), SAID_NO)
    since = Webhook.objects.get().failing_since
    record_attempt(claim_delivery(make_delivery(webhook).pk), SAID_NO)
    assert since == Webhook.objects.get().failing_since

    record_attempt(claim_delivery(make_delivery(webhook).pk), TAKEN)
    assert Webhook.objects.get().failing_since is None


def test_who_may_not_see_a_run_any_more_receives_nothing():
    root = make_user(is_superuser=True)
    delivery = make_delivery(make_webhook(root, everything=True), make_run())
    root.is_superuser = False
    root.save()

    posted = attempt_delivery(claim_delivery(delivery.pk), policy=HERE)
    assert (posted.error, posted.is_final) == (RUN_NOT_VISIBLE_MESSAGE, True)


def test_an_address_no_key_opens_is_given_up_with_a_sentence():
    webhook = make_webhook()
    Webhook.objects.update(sealed_url="no such token")
    delivery = sent(make_delivery(webhook))

    assert delivery.status == "failed"
    assert "cannot be read with the encryption keys" in delivery.error


@really
def test_an_answer_that_echoes_the_secret_is_kept_without_it():
    with listener() as server:
        webhook = webhook_at(server)
        secret = get_current_secrets(webhook)[0]
        server._answer = http("500 Oh", body=f"bad key {secret}".encode())
        delivery = sent(make_delivery(webhook))

    assert delivery.response_text == "bad key [secret removed]"


def test_a_delivery_that_is_over_is_not_sent_by_a_late_wakeup():
    with listener(answer=http("200 OK")) as server:
        send_delivery(
            make_delivery(webhook_at(server), status="failed").pk, policy=HERE
        )
        send_delivery(0, policy=HERE)

    assert server.knocks == 0


def test_times_are_the_databases(settings):
    settings.LEASE_SECONDS = 30
    delivery = claim_delivery(make_delivery(available_at=Now()).pk)

    left = (delivery.lease_until - timezone.now()).total_seconds()
    assert 0 < left <= 31
