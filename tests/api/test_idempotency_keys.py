"""`Idempotency-Key` on requests that create something other than a run."""

import pytest

from runs.models import RunComment
from tests.api.make_client import Api, fields_of
from tests.make import (
    make_agent,
    make_dataset,
    make_run,
    make_tool,
    make_user,
    make_webhook,
)

pytestmark = pytest.mark.django_db


def test_a_repeated_request_creates_nothing_and_returns_the_first():
    run = make_run()
    api = Api(run.owner)

    first = api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="k")
    second = api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="k")

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert RunComment.objects.count() == 1


def test_a_key_with_another_request_is_a_conflict():
    run = make_run()
    api = Api(run.owner)
    api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="k")

    answer = api.post(f"runs/{run.pk}/comments", {"text": "b"}, Idempotency_Key="k")

    assert (answer.status_code, fields_of(answer)) == (409, ["Idempotency-Key"])
    assert RunComment.objects.count() == 1


def test_a_key_that_started_a_run_creates_nothing_else_and_the_reverse():
    run = make_run()
    api, start = Api(run.owner), {"agent": run.agent.slug, "inputs": {"input": "a"}}
    api.post("runs", start, Idempotency_Key="run")
    api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="comment")

    comment = api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="run")
    second = api.post("runs", start, Idempotency_Key="comment")

    assert (comment.status_code, second.status_code) == (409, 409)


def test_a_refused_request_does_not_use_its_key():
    run = make_run()
    api = Api(run.owner)
    api.post(f"runs/{run.pk}/comments", {"text": " "}, Idempotency_Key="k")

    answer = api.post(f"runs/{run.pk}/comments", {"text": "a"}, Idempotency_Key="k")

    assert answer.status_code == 201


def test_examples_and_versions_of_a_dataset_are_added_once():
    dataset = make_dataset()
    api = Api(dataset.owner, scopes=["read", "build"])
    path = f"datasets/{dataset.pk}"
    examples = {"examples": [{"inputs": {"input": text}} for text in "abc"]}
    api.post(f"{path}/examples", {"examples": examples["examples"][:1]})

    added = [
        api.post(f"{path}/examples", examples, Idempotency_Key="a") for _ in range(2)
    ]
    saved = [
        api.post(f"{path}/versions", {"seen": 0}, Idempotency_Key="b") for _ in range(2)
    ]

    assert [answer.status_code for answer in (*added, *saved)] == [201, 200] * 2
    assert added[0].json() == added[1].json()
    assert saved[0].json() == saved[1].json()
    assert saved[1].json()["examples"] == 4


def test_a_run_is_shared_and_a_webhook_tested_once():
    run = make_run()
    webhook = make_webhook(run.owner)
    api = Api(run.owner)

    shared = [
        api.post(f"runs/{run.pk}/shares", {"hours": 1}, Idempotency_Key="a").json()
        for _ in range(2)
    ]
    tested = [
        api.post(f"webhooks/{webhook.pk}/test", Idempotency_Key="b").json()
        for _ in range(2)
    ]

    assert shared[0].pop("url")
    assert shared[0] == shared[1]
    assert tested[0]["id"] == tested[1]["id"]
    assert (run.shares.count(), webhook.deliveries.count()) == (1, 1)


def test_what_has_no_key_creates_nothing_when_it_is_repeated():
    """Publish and restore compare with what is there, so they need no key."""
    ann = make_user(is_superuser=True)
    agent, tool = make_agent(ann), make_tool(ann, description="Old.")
    api = Api(ann, scopes=["read", "build"])
    for text in ("New.", "Newer."):
        api.patch(f"tools/{tool.pk}", {"description": text})
    numbers = [one.number for one in tool.revisions.all()]
    paths = (
        f"agents/{agent.pk}/publish",
        f"agents/{agent.pk}/versions/1/restore",
        f"tools/{tool.pk}/revisions/{min(numbers)}/restore",
    )

    codes = [api.post(path).status_code for path in paths for _ in range(3)]

    assert set(codes) == {200}
    assert agent.versions.count() == 1
    assert tool.revisions.count() == len(numbers) + 1
