"""`POST /v1/traces`: formats, tokens, sizes, and the errors of the protocol."""

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from runs.models import ImportedSpan, ImportedTrace, Run
from runs.services.accounts.tokens import create_token
from runs.services.telemetry.importing import body as bodies
from tests.fakes.otlp_receiver import parse
from tests.make import make_user
from tests.makers.traces import (
    agent_span,
    as_json,
    as_protobuf,
    chat_span,
    weather_trace,
)

pytestmark = pytest.mark.django_db

PROTOBUF, JSON = "application/x-protobuf", "application/json"


def send(
    body: bytes, kind: str = PROTOBUF, *, token: str | None = None, **headers: str
) -> HttpResponse:
    token = token or create_token(make_user("ann"))
    return Client().post(
        "/v1/traces",
        body,
        content_type=kind,
        headers={"authorization": f"Bearer {token}", **headers},
    )


def read_status(answer: HttpResponse) -> dict[str, Any]:
    """Return `google.rpc.Status`, whose format is that of the request."""
    if answer["Content-Type"] == JSON:
        return json.loads(answer.content)
    fields = parse(answer.content)
    return {"code": fields[1][0], "message": fields[2][0].decode()}


@pytest.mark.parametrize(
    ("body", "kind", "headers"),
    [
        pytest.param(as_protobuf(weather_trace()), PROTOBUF, {}, id="protobuf"),
        pytest.param(as_json(weather_trace()), JSON, {}, id="json"),
        pytest.param(
            gzip.compress(as_protobuf(weather_trace())),
            PROTOBUF,
            {"content-encoding": "gzip"},
            id="gzip",
        ),
        pytest.param(
            as_json(weather_trace()),
            "application/json; charset=utf-8",
            {},
            id="charset",
        ),
    ],
)
def test_a_trace_becomes_a_run_of_the_owner_of_the_token(body, kind, headers):
    answer = send(body, kind, **headers)

    assert answer.status_code == 200
    assert answer["Content-Type"] == kind.partition(";")[0]
    assert answer.content == (b"" if kind == PROTOBUF else b"{}")
    run = Run.objects.get()
    assert run.owner.username == "ann"
    assert run.agent.name == "Weather agent"
    assert (run.status, run.output) == ("succeeded", "Yes, it is raining.")


def test_an_empty_request_is_accepted():
    assert send(b"{}", JSON).status_code == 200
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(PROTOBUF, b"\xff\xff\xff", id="no protobuf"),
        pytest.param(PROTOBUF, as_protobuf(weather_trace())[:-5], id="cut off"),
        pytest.param(PROTOBUF, as_json(weather_trace()), id="json as protobuf"),
        pytest.param(JSON, as_protobuf(weather_trace()), id="protobuf as json"),
        pytest.param(JSON, b'{"resourceSpans": [7]}', id="other shape"),
        pytest.param(JSON, b"[" * 100_000, id="deep"),
    ],
)
def test_an_unreadable_body_is_refused_in_the_format_of_the_request(kind, body):
    answer = send(body, kind)

    assert answer.status_code == 400
    assert answer["Content-Type"] == kind
    status = read_status(answer)
    assert status["code"] == 3
    assert "is not an OTLP trace request" in status["message"]
    assert not ImportedTrace.objects.exists()


@pytest.mark.parametrize(
    ("headers", "code", "said"),
    [
        pytest.param({"content-encoding": "br"}, 415, "'br' is unknown", id="unknown"),
        pytest.param({"content-encoding": "gzip"}, 400, "not valid gzip", id="no gzip"),
    ],
)
def test_a_wrong_encoding_is_refused(headers, code, said):
    answer = send(as_protobuf(weather_trace()), **headers)

    assert answer.status_code == code
    assert said in read_status(answer)["message"]


def test_gzip_that_is_cut_off_is_refused():
    body = gzip.compress(as_protobuf(weather_trace()))[:-12]

    answer = send(body, **{"content-encoding": "gzip"})

    assert answer.status_code == 400
    assert "cut off" in read_status(answer)["message"]


def test_another_content_type_is_refused():
    answer = send(b"x", "text/plain")

    assert answer.status_code == 415
    assert "application/x-protobuf" in read_status(answer)["message"]


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_request_of_a_hundred_megabytes_is_refused(encoding):
    body = b"\0" * 100_000_000
    body = gzip.compress(body, 1) if encoding else body

    answer = send(body, **({"content-encoding": encoding} if encoding else {}))

    assert answer.status_code == 413
    assert "larger than 16 MB" in read_status(answer)["message"]


def test_a_body_of_the_largest_size_is_read(monkeypatch):
    body = as_protobuf(weather_trace())
    monkeypatch.setattr(bodies, "MAX_BODY_BYTES", len(body))

    answer = send(gzip.compress(body), **{"content-encoding": "gzip"})

    assert answer.status_code == 200


def test_an_expired_token_is_refused():
    token = create_token(make_user(), lifetime=timedelta(seconds=-1))

    answer = send(as_protobuf(weather_trace()), token=token)

    assert answer.status_code == 401
    assert read_status(answer) == {
        "code": 16,
        "message": "The API token has expired. Create a new one.",
    }
    assert "Bearer" in answer["WWW-Authenticate"]
    assert not Run.objects.exists()


def test_a_token_without_the_scope_is_refused():
    token = create_token(make_user(), scopes=["read", "build"])

    answer = send(as_json(weather_trace()), JSON, token=token)

    assert answer.status_code == 403
    assert read_status(answer) == {
        "code": 7,
        "message": "The API token does not have the scope `run`.",
    }


def test_a_session_is_not_enough():
    client = Client()
    client.force_login(make_user())

    answer = client.post("/v1/traces", b"", content_type=PROTOBUF)

    assert answer.status_code == 401


def test_a_cyclic_trace_is_rejected_and_the_rest_is_stored():
    cycle = [
        agent_span(1, parent=2, trace_id="1" * 32),
        chat_span(2, trace_id="1" * 32),
    ]

    answer = send(as_json([*cycle, *weather_trace()]), JSON)

    assert answer.status_code == 200
    partial = json.loads(answer.content)["partialSuccess"]
    assert partial["rejectedSpans"] == "2"
    assert "parents of the span lead back to itself" in partial["errorMessage"]
    assert ImportedTrace.objects.count() == Run.objects.count() == 1


def test_rejected_spans_are_told_in_protobuf():
    answer = send(as_protobuf([agent_span(trace_id="0" * 32)]))

    assert answer.status_code == 200
    partial = parse(parse(answer.content)[1][0])
    assert partial[1] == [1]
    assert "not all zero" in partial[2][0].decode()


def test_the_limit_of_a_day_stores_nothing_of_the_request(settings):
    settings.TRACE_IMPORT_DAILY_SPANS = 4
    token = create_token(make_user())
    assert send(as_protobuf(weather_trace()), token=token).status_code == 200

    answer = send(as_protobuf([agent_span(trace_id="1" * 32)]), token=token)

    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 86_400
    assert "More than 4 spans" in read_status(answer)["message"]
    assert ImportedSpan.objects.count() == 4
    assert Run.objects.count() == 1
    assert send(as_protobuf(weather_trace()), token=token).status_code == 200


def test_the_import_can_be_disabled(settings):
    settings.TRACE_IMPORT_DAILY_SPANS = 0

    answer = send(as_protobuf(weather_trace()))

    assert answer.status_code == 404
    assert "is disabled" in read_status(answer)["message"]


def test_only_post_is_allowed():
    answer = Client().get("/v1/traces")

    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_others_do_not_see_the_run(client):
    send(as_protobuf(weather_trace()))
    stranger: User = make_user("stranger")
    client.force_login(stranger)

    assert client.get(f"/runs/{Run.objects.get().pk}/").status_code == 404
