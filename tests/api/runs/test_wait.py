"""`?wait=SECONDS`, through a real web server."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from runs.live.asgi import live_app
from runs.services.accounts.tokens import create_token
from tests.make import make_run, make_user
from tests.openai.site import answering_model, working
from tests.support.web_server import served
from tests.worker.run_parts import agent_on, ask_before

pytestmark = pytest.mark.django_db(transaction=True)

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def url(django_db_setup: None, redis_url: str) -> Iterator[str]:
    with served() as (address, _):
        yield f"{address}/api/v1/runs"


@pytest.fixture
def ask(url: str) -> Iterator[Ask]:
    """Send a request of Ann's, who has an agent that answers and mails."""
    ann = make_user("ann")
    token = create_token(ann)

    def send(path: str, question: str = "") -> tuple[int, Any]:
        body = {"agent": "helper", "inputs": {"input": question}}
        data = json.dumps(body).encode() if question else None
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)

    with answering_model() as model:
        agent = agent_on(model, "add", "send_mail", owner=ann, slug="helper")
        ask_before(agent, "send_mail")
        yield send


def test_a_run_is_started_and_answered_in_one_request(ask):
    with working():
        status, run = ask("?wait=50", "What is the sum?")

    assert (status, run["status"], run["output"]) == (201, "succeeded", "Result: 5.")
    assert [step["tool"] for step in run["steps"]] == ["add"]


def test_a_run_that_is_over_is_read_at_once(ask):
    with working():
        _, run = ask("?wait=50", "Hello")
    began = time.monotonic()

    status, read = ask(f"/{run['id']}?wait=50&steps=none")

    assert (status, read["output"], "steps" in read) == (200, "You said: Hello", False)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_the_response_does_not_wait_for_a_person(ask):
    with working():
        _, run = ask("?wait=50", "Write a mail.")

    assert (run["status"], run["steps"][-1]["tool"]) == (
        "awaiting_approval",
        "send_mail",
    )


def test_after_the_seconds_the_run_is_as_it_is_then(ask):
    status, run = ask("?wait=0.2", "Nobody works.")

    assert (status, run["status"], run["steps"]) == (201, "queued", [])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("wait=61", "less than or equal to 60", id="long"),
        pytest.param("wait=-1", "greater than or equal to 0", id="negative"),
        pytest.param("wait=nan", "finite", id="nan"),
        pytest.param("wait=soon", "valid number", id="word"),
    ],
)
def test_seconds_that_cannot_be_are_refused(query, message):
    run = make_run()
    headers = {"Authorization": f"Bearer {create_token(run.owner)}"}

    response = Client().get(f"/api/v1/runs/{run.pk}?{query}", headers=headers)

    (error,) = response.json()["errors"]
    assert (response.status_code, error["field"]) == (422, "wait")
    assert message in error["message"]


def test_a_session_cannot_wait():
    run = make_run()
    client = Client()
    client.force_login(run.owner)

    response = client.get(f"/api/v1/runs/{run.pk}?wait=5")

    assert response.status_code == 422
    assert response.json()["detail"] == "Waiting for a run needs an API token."


def test_too_many_open_requests_are_refused_for_a_while(settings, monkeypatch):
    settings.USER_STREAMS = 1
    run = make_run()
    monkeypatch.setattr(live_app, "_open_streams", {run.owner_id: 1})
    headers = {"Authorization": f"Bearer {create_token(run.owner)}"}

    for path in ("?wait=5", "/events"):
        response = Client().get(f"/api/v1/runs/{run.pk}{path}", headers=headers)

        assert response.status_code == 429
        assert response.json()["code"] == "too_many_requests"
        assert response.headers["Retry-After"] == "10"
