"""Who may call the API, and how it refuses."""

import gzip

import pytest
from django.db import OperationalError
from django.test import Client

from runs.api import dispatch as door
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db

CALLS = [
    ("POST", "runs"),
    ("GET", "runs/1"),
    ("POST", "runs/1/cancel"),
]


@pytest.mark.parametrize(("verb", "path"), CALLS)
@pytest.mark.parametrize(
    "header",
    [
        pytest.param({}, id="none"),
        pytest.param({"Authorization": "Bearer as_wrong"}, id="wrong"),
        pytest.param({"Authorization": "Bearer"}, id="empty"),
        pytest.param({"Authorization": "Basic YTpi"}, id="basic"),
    ],
)
def test_asks_for_a_token(verb, path, header):
    answer = Client().generic(verb, f"/api/v1/{path}", headers=header)

    assert (answer.status_code, fields_of(answer)) == (401, ["Authorization"])
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_session_cannot_write():
    run, client = make_run(), Client()
    client.force_login(run.owner)

    answer = client.post(f"/api/v1/runs/{run.pk}/cancel")

    assert answer.status_code == 401
    run.refresh_from_db()
    assert run.status == "queued"


def test_an_invalid_token_is_401_even_with_a_session():
    run, client = make_run(), Client()
    client.force_login(run.owner)

    answer = client.get(
        f"/api/v1/runs/{run.pk}", headers={"Authorization": "Bearer as_x"}
    )

    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("PUT", "runs", "GET, HEAD, POST"),
        ("PUT", "runs/1", "DELETE, GET, HEAD"),
        ("GET", "runs/1/cancel", "POST"),
        ("PUT", "runs/1/cancel", "POST"),
    ],
)
def test_another_method_is_405(verb, path, allowed):
    answer = Client().generic(verb, f"/api/v1/{path}")

    assert (answer.status_code, fields_of(answer)) == (405, ["method"])
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize(
    "path", ["", "runz", "runs/1/cancel/now", "runs/-1", "runs/%0A1"]
)
@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_an_unknown_path_is_404(verb, path):
    answer = Client().generic(verb, f"/api/v1/{path}")

    assert (answer.status_code, fields_of(answer)) == (404, ["path"])


def test_a_trailing_slash_is_accepted():
    ann = make_user()
    make_agent(ann, slug="adder")
    api = Api(ann)

    run = api.post("runs/", {"agent": "adder", "inputs": {"input": "a"}}).json()

    assert api.get(f"runs/{run['id']}/").status_code == 200
    assert api.post(f"runs/{run['id']}/cancel/").status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(OperationalError("gone"), 503, id="database"),
        pytest.param(RuntimeError("secret word"), 500, id="ours"),
    ],
)
def test_server_errors_are_problem_json(monkeypatch, error, status):
    run = make_run()
    api = Api(run.owner)

    def fail(token):
        raise error

    monkeypatch.setattr(door, "find_valid_token", fail)
    answer = api.get(f"runs/{run.pk}")

    assert (answer.status_code, fields_of(answer)) == (status, ["server"])
    assert "secret" not in answer.text


def test_responses_are_not_cached():
    run = make_run()

    assert Api(run.owner).get(f"runs/{run.pk}").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("get", "runs/{}", "read"),
        ("get", "approvals", "read"),
        ("post", "runs", "run"),
        ("post", "runs/{}/cancel", "run"),
        ("post", "runs/{}/resume", "run"),
        ("post", "runs/{}/fork", "run"),
        ("post", "approvals/1/approve", "approve"),
        ("post", "approvals/1/reject", "approve"),
        ("post", "approvals/1/settle", "approve"),
    ],
)
def test_a_token_needs_the_scope_of_the_request(method, path, scope):
    run = make_run()
    path = path.format(run.pk)
    others = {"read", "run", "approve", "build", "admin"} - {scope}

    refused = getattr(Api(run.owner, scopes=others), method)(path)
    let_in = getattr(Api(run.owner, scopes=[scope]), method)(path)

    assert refused.status_code == 403
    assert fields_of(refused) == ["Authorization"]
    assert let_in.status_code != 403


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"agent": "café"}'.encode("latin-1"), id="latin-1"),
        pytest.param('{"agent": "a"}'.encode("utf-16"), id="utf-16"),
        pytest.param(gzip.compress(b'{"agent": "a"}'), id="gzip"),
    ],
)
def test_a_body_in_another_encoding_is_refused(body):
    answer = Api(make_user()).post("runs", body)

    assert (answer.status_code, fields_of(answer)) == (400, ["body"])
    assert "is not UTF-8. Send JSON in UTF-8" in answer.json()["detail"]
