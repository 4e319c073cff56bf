"""Tests of what a refusal means: providers say the same in many ways."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from runs.llm.base import Endpoint
from runs.llm.refusals import parse_refusal, parse_retry_after, parse_stream_refusal

ENDPOINT = Endpoint(kind="openai", base_url="http://there/v1", key="sk-1", slug="there")


def meaning(status: int, body: bytes):
    return parse_refusal(
        ENDPOINT,
        status,
        body,
        headers={},
        model="m-1",
        address="http://there/v1/chat/completions",
    )


BODIES = {
    "llama.cpp too long": (
        400,
        b'{"error":{"code":400,"message":"the request exceeds the available context '
        b'size. try increasing the context size","type":"exceed_context_size_error"}}',
        "context_too_long",
    ),
    "anthropic too long": (
        400,
        b'{"type":"error","error":{"type":"invalid_request_error",'
        b'"message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
        "context_too_long",
    ),
    "gemini too long": (
        400,
        b'[{"error":{"code":400,"message":"The input token count (9) exceeds the '
        b'maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]',
        "context_too_long",
    ),
    "gemini wrong key": (
        400,
        b'[{"error":{"code":400,"message":"API key not valid.",'
        b'"status":"INVALID_ARGUMENT"}}]',
        "auth",
    ),
    "azure filter": (
        400,
        b'{"error":{"code":"content_filter","message":"The response was filtered"}}',
        "content_filter",
    ),
    "forbidden content": (
        403,
        b'{"error":{"message":"Violates our content policy"}}',
        "content_filter",
    ),
    "ollama unknown model": (
        404,
        b'{"error":"model \'m-1\' not found"}',
        "not_found",
    ),
    "fastapi": (404, b'{"detail":"Not Found"}', "not_found"),
    "plain": (404, b"404 page not found", "not_found"),
    "method": (405, b"", "not_found"),
    "no credit": (402, b"", "rate_limit"),
    "anthropic permission": (
        403,
        b'{"type":"error","error":{"type":"permission_error","message":"No access"}}',
        "forbidden",
    ),
    "gateway": (403, b"<html>Forbidden</html>", "forbidden"),
    "wrong key as 403": (
        403,
        b'{"error":{"code":"invalid_api_key","message":"Wrong."}}',
        "auth",
    ),
    "message only": (422, b'{"message":"nope"}', "bad_request"),
    "not implemented": (501, b"", "bad_request"),
    "teapot": (418, b"[[[", "bad_request"),
}


@pytest.mark.parametrize(("status", "body", "code"), BODIES.values(), ids=BODIES.keys())
def test_each_way_of_saying_it_has_the_same_class(status, body, code):
    assert meaning(status, body).code == code


def test_long_explanations_are_cut_and_put_on_one_line():
    body = b'{"error":{"message":"no\\n' + b"x" * 1000 + b' sk-1","param":"top_p"}}'
    message = str(meaning(400, body))

    assert "It says: no xxx" in message
    assert message.endswith("x…")
    assert len(message) < 450


def test_the_parameter_is_named():
    body = b'{"error":{"message":"Unsupported value.","param":"top_p"}}'

    assert "Unsupported value. (parameter 'top_p')" in str(meaning(400, body))


def test_an_error_in_an_event_is_quoted():
    body = b'data: {"error":\n{"message":"No route."}}\n\ndata: [DONE]\n\n'

    assert str(meaning(500, body)).endswith("It says: No route.")


def test_a_list_of_what_is_wrong_is_quoted():
    body = b'{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs"}]}'

    assert '"top_k"],"msg":"Extra inputs"' in str(meaning(422, body))


STREAMED = {
    "by number": ({"code": 429, "message": "slow down"}, "rate_limit", True),
    "by digits": ({"code": "503"}, "overloaded", True),
    "by type": ({"type": "overloaded_error"}, "overloaded", True),
    "by limit": ({"type": "rate_limit_exceeded"}, "rate_limit", True),
    "by key": ({"code": "invalid_api_key"}, "auth", False),
    "by permission": ({"type": "permission_error"}, "forbidden", False),
    "by nothing": ({}, "overloaded", True),
    "by odd things": ({"code": True, "status": [], "type": 7}, "overloaded", True),
    "by a huge number": ({"code": "9" * 5000, "type": "x"}, "bad_request", False),
    "too long": (
        {"code": "context_length_exceeded", "message": "too long"},
        "context_too_long",
        False,
    ),
}


@pytest.mark.parametrize(
    ("error", "code", "may_retry"), STREAMED.values(), ids=STREAMED.keys()
)
def test_an_error_in_a_stream_has_its_class(error, code, may_retry):
    failed = parse_stream_refusal(ENDPOINT, error, model="m-1")

    assert (failed.code, failed.may_retry) == (code, may_retry)


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "3"}, 3, 3),
        ({"retry-after": " 1.5 "}, 1.5, 1.5),
        ({"retry-after": "3s"}, 3, 3),
        ({"retry-after": "900ms"}, 0.9, 0.9),
        ({"retry-after-ms": "20"}, 0.02, 0.02),
        ({"retry-after": in_seconds(-20)}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0, 0),
    ],
    ids=["whole", "broken", "s", "ms", "header ms", "past", "no zone"],
)
def test_every_form_of_retry_after_is_parsed(headers, least, most):
    assert least <= (parse_retry_after(headers) or 0) <= most


def test_a_date_of_retry_after_is_parsed():
    seconds = parse_retry_after({"retry-after": in_seconds(3000)})

    assert 2900 <= (seconds or 0) <= 3001


@pytest.mark.parametrize(
    "value", ["", "soon", "-3", "1e9", "nan", "9" * 5000, "ms", "Wed, 99 Oct 9999999"]
)
def test_an_invalid_retry_after_is_ignored(value):
    assert parse_retry_after({"retry-after": value, "retry-after-ms": "x"}) is None
