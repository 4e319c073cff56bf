"""`Idempotency-Key` on requests that create something other than a run."""

import pytest

from runs.models import RunComment
from tests.api.make_client import Api, fields_of
from tests.make import make_run

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
