"""Schedules, webhooks and conversations through the API."""

import pytest
from django.utils import timezone

from runs.models import Run, Schedule, Webhook
from tests.api.make_client import Api, fields_of
from tests.make import (
    make_agent,
    make_delivery,
    make_schedule,
    make_user,
    make_version,
    make_webhook,
)
from tools.secrets import unseal

pytestmark = pytest.mark.django_db

SCHEDULE = {"name": "Daily", "cron": "0 9 * * *", "inputs": {"input": "hi"}}


def make_published_agent(owner):
    agent = make_agent(owner, slug="planner")
    Api(owner, scopes=["build"]).post(f"agents/{agent.pk}/publish")
    return agent


def test_a_schedule_is_created_paused_and_resumed():
    ann = make_user()
    make_published_agent(ann)
    api = Api(ann)

    made = api.post("schedules", {"agent": "planner", **SCHEDULE}).json()
    paused = api.post(f"schedules/{made['id']}/pause").json()
    resumed = api.post(f"schedules/{made['id']}/resume").json()

    assert made["next_at"]
    assert (paused["is_paused"], paused["next_at"]) == (True, None)
    assert not resumed["is_paused"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cron": "every day"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"inputs": {"city": "Lima"}}, "inputs.city"),
        ({"agent": "draft"}, "agent"),
        ({"agent": "nobodys"}, "agent"),
        ({"overlap": "both"}, "overlap"),
    ],
)
def test_a_refused_schedule_names_its_field(body, field):
    ann = make_user()
    make_published_agent(ann)
    make_agent(ann, slug="draft")

    answer = Api(ann).post("schedules", {"agent": "planner", **SCHEDULE, **body})

    assert (answer.status_code, fields_of(answer)[0]) == (422, field)
    assert not Schedule.objects.exists()


def test_a_schedule_that_changed_meanwhile_is_not_overwritten():
    ann = make_user()
    schedule = make_schedule(ann, agent=make_published_agent(ann), name="First")
    api, path = Api(ann), f"schedules/{schedule.pk}"
    seen = api.get(path).headers["ETag"]
    api.patch(path, {"name": "Second"}, If_Match=seen)

    late = api.patch(path, {"name": "Third"}, If_Match=seen)

    assert (late.status_code, Schedule.objects.get().name) == (412, "Second")


def test_a_scheduled_run_starts_at_once():
    ann = make_user()
    agent = make_published_agent(ann)
    schedule = make_schedule(ann, agent=agent, inputs={"input": "hi"})

    answer = Api(ann).post(f"schedules/{schedule.pk}/run")
    again = Api(ann).post(f"schedules/{schedule.pk}/run")

    assert (answer.status_code, again.status_code) == (201, 409)
    assert Run.objects.get().schedule == schedule


def test_the_secret_of_a_webhook_is_shown_once():
    ann = make_user()
    body = {
        "name": "Chat",
        "url": "https://chat.example.org/secret",
        "events": ["run.failed"],
    }
    api = Api(ann)

    made = api.post("webhooks", body, Idempotency_Key="k").json()
    again = api.post("webhooks", body, Idempotency_Key="k").json()
    rotated = api.post(f"webhooks/{made['id']}/rotate").json()

    assert made["secret"].startswith("whsec_")
    assert "secret" not in again
    assert "secret" not in api.get(f"webhooks/{made['id']}").json()
    assert rotated["secret"] == unseal(Webhook.objects.get().sealed_secret)
    assert "chat.example.org/secret" not in api.get("webhooks").text


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"url": "ftp://example.org"}, 422, "url"),
        ({"url": "http://127.0.0.1/x"}, 422, "url"),
        ({"events": []}, 422, "events"),
        ({"events": ["run.exploded"]}, 422, "events.0"),
        ({"everything": True}, 403, "everything"),
        ({"agent": "nobodys"}, 422, "agent"),
    ],
)
def test_a_refused_webhook_names_its_field(body, status, field):
    whole = {"name": "x", "url": "https://example.org", "events": ["run.failed"]}

    answer = Api(make_user()).post("webhooks", {**whole, **body})

    assert (answer.status_code, fields_of(answer)[0]) == (status, field)
    assert not Webhook.objects.exists()


def test_a_changed_webhook_keeps_its_address_and_secret():
    webhook = make_webhook(name="Chat")
    before = Webhook.objects.get()

    answer = Api(webhook.owner).patch(f"webhooks/{webhook.pk}", {"name": "Other"})

    after = Webhook.objects.get()
    assert (answer.status_code, after.name) == (200, "Other")
    assert (after.sealed_url, after.sealed_secret, after.events) == (
        before.sealed_url,
        before.sealed_secret,
        before.events,
    )


def test_a_delivery_is_sent_again():
    webhook = make_webhook()
    delivery = make_delivery(webhook, status="failed")
    api = Api(webhook.owner)

    [found] = api.get(f"webhooks/{webhook.pk}/deliveries").json()["data"]
    again = api.post(f"webhooks/{webhook.pk}/deliveries/{delivery.pk}/resend").json()

    assert (found["status"], again["status"]) == ("failed", "waiting")


def end_runs():
    Run.objects.update(status="succeeded", ended_at=timezone.now())


def test_a_conversation_has_turns_and_branches():
    ann = make_user()
    make_version(make_agent(ann, slug="planner", memory=True))
    api = Api(ann)
    chat = api.post("conversations", {"agent": "planner"}).json()
    path = f"conversations/{chat['id']}"

    first = api.post(f"{path}/turns", {"inputs": {"input": "one"}}).json()
    end_runs()
    second = api.post(f"{path}/turns", {"inputs": {"input": "two"}}).json()
    branch = api.post(
        f"{path}/branches", {"run": second["id"], "inputs": {"input": "3"}}
    )

    turns = api.get(f"{path}/turns").json()["data"]
    assert [turn["id"] for turn in turns] == [first["id"], second["id"]]
    other = api.get(f"conversations/{branch.json()['conversation']}").json()
    assert (other["branch_of"], other["branch_at"]) == (chat["id"], second["id"])


@pytest.mark.parametrize(("memory", "status"), [(True, 409), (False, 201)])
def test_a_turn_that_would_miss_an_answer_is_a_conflict(memory, status):
    ann = make_user()
    make_version(make_agent(ann, slug="planner", memory=memory))
    api = Api(ann)
    chat = api.post("conversations", {"agent": "planner"}).json()
    path = f"conversations/{chat['id']}/turns"
    api.post(path, {"inputs": {"input": "one"}})
    second = api.post(path, {"inputs": {"input": "two"}})

    assert second.status_code == status
    assert ("Wait until it is complete" in second.text) is (status == 409)


def test_a_conversation_is_renamed_and_archived():
    ann = make_user()
    make_agent(ann, slug="planner")
    api = Api(ann)
    chat = api.post("conversations", {"agent": "planner"}).json()

    changed = api.patch(
        f"conversations/{chat['id']}", {"title": "Trip", "archived": True}
    ).json()

    assert (changed["title"], bool(changed["archived_at"])) == ("Trip", True)
    assert api.get("conversations").json()["data"] == []
    assert len(api.get("conversations?archived=true").json()["data"]) == 1


@pytest.mark.parametrize(
    ("path", "more"),
    [
        pytest.param("conversations/{}/turns", {}, id="turns"),
        pytest.param("conversations/{}/branches", {"run": 0}, id="branches"),
        pytest.param("runs", {"agent": "planner", "conversation": 0}, id="runs"),
    ],
)
def test_an_archived_conversation_takes_no_message(path, more):
    ann = make_user()
    make_agent(ann, slug="planner", memory=True)
    api = Api(ann)
    chat = api.post("conversations", {"agent": "planner"}).json()["id"]
    turns = f"conversations/{chat}/turns"
    run = api.post(turns, {"inputs": {"input": "one"}}).json()["id"]
    api.patch(f"conversations/{chat}", {"archived": True})
    ids = {"run": run, "conversation": chat}
    body = {name: ids.get(name, value) for name, value in more.items()}
    answer = api.post(path.format(chat), {**body, "inputs": {"input": "two"}})

    assert answer.status_code == 403
    assert "This conversation is archived." in answer.text
    assert len(api.get(turns).json()["data"]) == 1
    assert api.get("conversations").json()["data"] == []
