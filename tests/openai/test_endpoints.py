"""Requests to the OpenAI-compatible endpoints: who may what, and what is refused."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from runs.models import Agent, ApiToken, Conversation, Run
from runs.services.accounts.tokens import create_token
from tests.make import (
    make_agent,
    make_prompt,
    make_run,
    make_user,
    make_version,
)

pytestmark = pytest.mark.django_db


class Caller:
    """A program with a token."""

    def __init__(self, user: Any, **token: Any) -> None:
        self.headers = {"Authorization": f"Bearer {create_token(user, **token)}"}
        self.client = Client(raise_request_exception=False, enforce_csrf_checks=True)

    def get(self, path: str) -> HttpResponse:
        return self.client.get(f"/v1/{path}", headers=self.headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body or {})
        return self.client.generic(
            "POST",
            f"/v1/{path}",
            raw,
            content_type="application/json",
            headers={**self.headers, **headers},
        )

    def chat(self, model: str = "helper", **fields: Any) -> HttpResponse:
        messages = [{"role": "user", "content": "Hi"}]
        return self.post(
            "chat/completions", {"model": model, "messages": messages, **fields}
        )


@pytest.fixture
def ann():
    return make_user("ann")


@pytest.fixture
def agent(ann):
    return make_agent(ann, slug="helper")


@pytest.fixture
def caller(ann, agent):
    return Caller(ann)


def error_of(answer: HttpResponse) -> tuple[int, str, str | None]:
    """Return status, code and parameter of an error, having checked its shape."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].endswith((".", "`."))
    assert (Run.objects.count(), Conversation.objects.count()) == (0, 0)
    return answer.status_code, error["code"], error["param"]


def test_models_are_the_agents_that_the_user_may_run(caller):
    make_agent(slug="foreign")
    make_agent(slug="public", visibility="everyone")
    make_agent(slug="old", visibility="everyone", archived_at=timezone.now())
    make_agent(slug="hidden", visibility="everyone", is_playground=True)

    models = caller.get("models").json()["data"]

    assert [one["id"] for one in models] == ["helper", "public"]
    assert caller.get("models/public").json()["object"] == "model"


@pytest.mark.parametrize("model", ["foreign", "nobody", "helper@9", "helper@x", "a\0b"])
def test_agents_of_strangers_are_unknown_models(caller, model):
    make_agent(slug="foreign")

    assert error_of(caller.chat(model)) == (404, "model_not_found", "model")


def test_agents_of_strangers_and_missing_ones_read_the_same(caller):
    make_agent(slug="foreign")

    said = [
        caller.chat(name).json()["error"]["message"].replace(name, "it")
        for name in ("foreign", "nothing")
    ]

    assert said[0] == said[1]


def test_a_version_can_be_pinned(caller, agent):
    first, second = make_version(agent), make_version(agent)

    assert caller.chat("helper@1").status_code == 200
    assert caller.chat("helper").status_code == 200

    versions = Run.objects.order_by("pk").values_list("version", flat=True)
    assert list(versions) == [first.pk, second.pk]


@pytest.mark.parametrize(
    ("scopes", "missing"),
    [(["read"], "`run`"), (["run"], "`read`"), (["approve"], "`run` and `read`")],
)
def test_a_run_needs_the_scopes_to_run_and_to_read(ann, agent, scopes, missing):
    answer = Caller(ann, scopes=scopes).chat()

    assert error_of(answer) == (403, "missing_scope", None)
    assert missing in answer.json()["error"]["message"]


def test_models_need_the_scope_to_read(ann, agent):
    assert Caller(ann, scopes=["read"]).get("models").status_code == 200
    answer = Caller(ann, scopes=["run"]).get("models")
    assert error_of(answer) == (403, "missing_scope", None)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"expires_at": timezone.now() - timedelta(days=1)}, "token_expired"),
        ({"revoked_at": timezone.now()}, "token_revoked"),
        ({"digest": "another"}, "invalid_api_key"),
    ],
)
def test_each_invalid_token_is_told_why(caller, fields, code):
    ApiToken.objects.update(**fields)
    answer = caller.chat()

    assert error_of(answer) == (401, code, None)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_session_is_not_a_token(caller, ann):
    caller.client.force_login(ann)
    caller.headers = {}

    assert error_of(caller.chat()) == (401, "missing_api_key", None)


SEARCH_NOTES = {"type": "function", "function": {"name": "search_notes"}}


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"n": 2}, "unsupported_parameter", "n"),
        ({"tools": [SEARCH_NOTES]}, "unsupported_parameter", "tools"),
        ({"functions": [SEARCH_NOTES]}, "unsupported_parameter", "functions"),
        ({"tool_choice": "required"}, "unsupported_parameter", "tool_choice"),
        (
            {"response_format": {"type": "json_object"}},
            "unsupported_parameter",
            "response_format",
        ),
        ({"logprobs": True}, "unsupported_parameter", "logprobs"),
        ({"temprature": 1}, "unknown_parameter", "temprature"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": "Hi"}, "invalid_value", "messages"),
        ({"metadata": {"city": "Lima"}}, "invalid_value", "metadata.city"),
        ({"metadata": {"input": "Lima"}}, "invalid_value", "metadata.input"),
        ({"metadata": {"city": 1}}, "invalid_value", "metadata.city"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(caller, fields, code, param):
    assert error_of(caller.chat(**fields)) == (400, code, param)


def test_what_the_agent_decides_is_accepted(caller):
    answer = caller.chat(
        n=1,
        temperature=0.5,
        max_tokens=10,
        tools=[],
        tool_choice="auto",
        response_format={"type": "text"},
        logprobs=None,
        user="u",
    )

    assert answer.status_code == 200


def test_a_response_takes_no_tools_of_the_caller(caller):
    body = {"model": "helper", "input": "Hi", "background": True}
    web_search = {"type": "web_search"}

    refused = caller.post("responses", {**body, "tools": [web_search]})

    assert error_of(refused) == (400, "unsupported_parameter", "tools")
    assert "Leave `tools` out" in refused.json()["error"]["message"]
    empty = {"tools": [], "tool_choice": "none"}
    assert caller.post("responses", {**body, **empty}).status_code == 200


IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "user", "content": [IMAGE]}], "messages[0].content[0]"),
        ([{"role": "tool", "content": "5"}], "messages[0].role"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "1"}]}],
            "messages[0].tool_calls",
        ),
        ([{"role": "assistant", "content": "Hi"}], "messages"),
        ([{"role": "robot", "content": "Hi"}], "messages[0].role"),
        ([{"role": "user", "content": " "}], "metadata.input"),
    ],
)
def test_a_message_that_an_agent_cannot_take_is_named(caller, messages, param):
    status, _, named = error_of(caller.chat(messages=messages))

    assert (status, named) == (400, param)


def test_ten_megabytes_of_messages_are_refused(caller):
    messages = [{"role": "user", "content": "a" * 1_000_000}] * 10

    answer = caller.chat(messages=messages)

    assert error_of(answer) == (413, "request_too_large", None)
    assert "larger than 2.5 MB" in answer.json()["error"]["message"]


def test_a_body_that_is_no_json_is_refused(caller):
    for body in (b"{", '{"model": "helper"}'.encode("utf-16")):
        assert error_of(caller.post("responses", body)) == (
            400,
            "invalid_value",
            "body",
        )


def test_variables_are_sent_as_metadata(caller, agent):
    agent.prompt = make_prompt(
        agent.owner, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent.save()

    assert error_of(caller.chat()) == (400, "invalid_value", "metadata.city")
    assert caller.chat(metadata={"city": "Lima"}).status_code == 200
    assert Run.objects.get().inputs == {"input": "Hi", "city": "Lima"}


def test_instructions_of_the_caller_come_before_the_other_messages(caller):
    caller.chat(
        messages=[
            {"role": "system", "content": "Be kind."},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "One"},
            {"role": "user", "content": [{"type": "text", "text": "Two"}]},
        ]
    )

    run = Run.objects.get()
    assert run.inputs == {"input": "Two"}
    assert run.given_turns == [["Be kind.", "Hello!"], ["One", None]]


def test_too_many_runs_are_refused_for_a_while(caller, ann, settings):
    settings.USER_RUNS = 1
    make_run(ann)

    answer = caller.chat()

    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"
    assert answer.headers["Retry-After"] == "10"


def test_a_repeated_request_starts_one_run(caller):
    body = {"model": "helper", "input": "Hi", "background": True}
    key = {"Idempotency-Key": "4711"}

    ids = [caller.post("responses", body, **key).json()["id"] for _ in range(2)]
    other = caller.post("responses", {**body, "input": "Ho"}, **key)

    assert ids[0] == ids[1]
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    assert Run.objects.count() == 1


def test_a_response_is_the_run_and_can_be_canceled(caller):
    body = {"model": "helper", "input": "Hi", "background": True}
    started = caller.post("responses", body).json()

    assert started["status"] == "queued"
    path = f"responses/{started['id']}"
    assert caller.post(f"{path}/cancel").json()["status"] == "cancelled"
    assert caller.get(path).json()["status"] == "cancelled"
    assert Run.objects.get().status == "canceled"


def test_a_response_of_somebody_else_is_not_there(caller):
    foreign = make_run(status="succeeded")
    named = {"model": "helper", "input": "Hi"}

    for answer in (
        caller.get(f"responses/resp_{foreign.pk}"),
        caller.post(f"responses/resp_{foreign.pk}/cancel"),
    ):
        assert answer.status_code == 404
    answer = caller.post(
        "responses", {**named, "previous_response_id": f"resp_{foreign.pk}"}
    )
    assert answer.json()["error"]["code"] == "previous_response_not_found"
    assert Run.objects.get() == foreign


def test_a_response_to_another_agent_takes_the_messages_along(caller, ann, agent):
    Agent.objects.update(memory=True)
    other = make_agent(ann, slug="other")
    before = make_run(ann, agent=other, status="succeeded", given_turns=[["a", "b"]])

    body = {"model": "helper", "input": "Hi", "background": True}
    caller.post("responses", {**body, "previous_response_id": f"resp_{before.pk}"})

    run = Run.objects.latest("pk")
    assert run.given_turns == [["a", "b"], ["What is 2 + 2?", "4"]]


def test_unknown_addresses_answer_in_the_same_shape(caller):
    for path in ("embeddings", "embeddings%0A1"):
        assert error_of(caller.get(path)) == (404, "unknown_url", None)
    assert error_of(caller.post("models")) == (405, "method_not_allowed", None)


def test_a_conversation_of_somebody_else_is_not_continued(agent):
    Agent.objects.update(memory=True)
    theirs = Conversation.objects.create(owner=agent.owner, agent=agent)
    before = make_run(agent=agent, status="succeeded", conversation=theirs)
    boss = make_user("boss", is_superuser=True)

    body = {"model": "helper", "input": "Hi", "background": True}
    answer = Caller(boss).post(
        "responses", {**body, "previous_response_id": f"resp_{before.pk}"}
    )

    run = Run.objects.latest("pk")
    assert answer.status_code == 200
    assert (run.owner, run.conversation.owner) == (boss, boss)
    assert run.given_turns == [["What is 2 + 2?", "4"]]
