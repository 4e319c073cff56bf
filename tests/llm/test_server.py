"""Tests of addresses, headers and connections of a model server."""

import pytest

from runs.llm.base import Endpoint
from runs.llm.errors import ModelCallError
from runs.llm.registry import PROVIDER_KINDS, open_llm
from runs.llm.server import build_endpoint_url
from tests.fakes.listener import http, listener
from tests.fakes.model_server import model_server
from tests.llm.make import make_llm, make_request, soon
from tools.net.netguard import NetPolicy


@pytest.mark.parametrize(
    ("base", "found"),
    [
        ("http://there:11434", "http://there:11434/v1/chat/completions"),
        ("http://there/", "http://there/v1/chat/completions"),
        (" https://there/v1/ ", "https://there/v1/chat/completions"),
        ("https://there/api/v3", "https://there/api/v3/chat/completions"),
        ("https://there/v1/chat/completions", "https://there/v1/chat/completions"),
        ("https://there/v1/models", "https://there/v1/chat/completions"),
        ("https://there/x?v=1", "https://there/x/chat/completions?v=1"),
        ("https://there/v1#top", "https://there/v1/chat/completions"),
    ],
)
def test_a_base_url_is_completed(base, found):
    endpoint = Endpoint(kind="openai", base_url=base)

    assert str(build_endpoint_url(endpoint, "/chat/completions")) == found


@pytest.mark.parametrize(
    "base",
    [
        *("", "there", "ftp://there/", "http://", "http://[::1", "http://a\x00b/"),
        "http://xn--0.pt/",
    ],
)
def test_an_invalid_base_url_is_explained(base):
    llm = make_llm(base)

    with pytest.raises(ModelCallError, match="is not a server address") as caught:
        llm.complete(make_request(), deadline=soon())
    assert "provider 'local'" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("sk-é", ("a", "b")),
        ("sk-1", ("X-Team", "a\r\nb: c")),
        ("sk-1", ("X Team", "a")),
    ],
    ids=["letter", "line break", "name"],
)
def test_an_invalid_header_is_explained(key, header):
    llm = make_llm("http://127.0.0.1:1/", key=key, headers=(header,))

    with pytest.raises(ModelCallError, match="cannot be sent. Enter it again"):
        llm.complete(make_request(), deadline=soon())


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "transfer-encoding", "Connection", "Expect"]
)
def test_headers_of_the_connection_are_never_sent(name):
    with model_server() as server:
        llm = make_llm(server.base_url, headers=((name, "x"),))
        with pytest.raises(ModelCallError, match="belongs to the connection"):
            llm.complete(make_request(), deadline=soon())

    assert not server.requests


def test_no_key_sends_no_authorization():
    with model_server() as server:
        llm = make_llm(server.base_url, key=" ")
        llm.complete(make_request(), deadline=soon())
        llm.close()

    assert "authorization" not in server.requests[0].headers


CONNECTIONS = {
    "http://127.0.0.1:1/v1": ("transport", "No server answers at http://127.0.0.1:1"),
    "http://no.such.host.invalid/v1": ("transport", "Host 'no.such.host"),
    "http://10.1.2.3/v1": ("refused_address", "AGENTSITE_PRIVATE_HOSTS=provider="),
    "http://169.254.169.254/v1": ("refused_address", "clouds hand out credentials"),
}


@pytest.mark.parametrize("base", CONNECTIONS)
def test_a_connection_that_cannot_be_made_is_explained(base):
    code, sentence = CONNECTIONS[base]
    llm = make_llm(base)

    with pytest.raises(ModelCallError, match=sentence) as caught:
        llm.complete(make_request(), deadline=soon())
    assert caught.value.code == code


def test_plain_answers_to_tls_are_explained():
    with listener(answer=http("400 Bad Request")) as there:
        llm = make_llm(f"https://127.0.0.1:{there.port}/v1")
        with pytest.raises(ModelCallError, match="without TLS needs http://"):
            llm.complete(make_request(), deadline=soon())


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        (
            http("301 Moved", "Location: https://there/v1"),
            "not_found",
            "redirects to 'https://there/v1'. Enter the correct base URL",
        ),
        (http("304 Not Modified"), "bad_request", "status 304"),
        (http("204 No Content"), "bad_reply", "an answer with status 204"),
    ],
    ids=["redirect", "odd", "nothing"],
)
def test_odd_statuses_are_explained(answer, code, sentence):
    with listener(answer=answer) as there:
        llm = make_llm(f"http://127.0.0.1:{there.port}/v1")
        with pytest.raises(ModelCallError, match=sentence) as caught:
            llm.complete(make_request(), deadline=soon())
        llm.close()
    assert caught.value.code == code


def test_a_stream_asked_for_may_come_as_a_whole():
    received: list[str] = []
    body = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    answer = http("200 OK", "Content-Type: application/json", body=body)
    with listener(answer=answer) as there:
        llm = make_llm(f"http://127.0.0.1:{there.port}/v1")
        reply = llm.complete(make_request(), deadline=soon(), on_text=received.append)
        llm.close()

    assert (reply.text, received) == ("hi", ["hi"])


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(
        ModelCallError, match="Provider kind 'telex' not found. Use one of openai"
    ):
        open_llm(Endpoint(kind="telex"), NetPolicy())


def test_every_kind_has_a_title_and_opens():
    for name, kind in PROVIDER_KINDS.items():
        assert kind.title
        llm = open_llm(Endpoint(kind=name, base_url=kind.base_url), NetPolicy())
        llm.close()


CARDS = {
    "openrouter": (
        {"context_length": 9, "supported_parameters": ["tools", "stop"]},
        (True, True, 9),
    ),
    "openrouter without": ({"supported_parameters": []}, (False, False, None)),
    "vllm": ({"max_model_len": 9}, (None, None, 9)),
    "llama.cpp": ({"meta": {"n_ctx": 9}}, (None, None, 9)),
    "mistral": (
        {"max_context_length": 9, "capabilities": {"function_calling": True}},
        (True, None, 9),
    ),
    "groq": ({"context_window": 9}, (None, None, 9)),
    "anthropic": ({"max_input_tokens": 9, "max_tokens": 4}, (None, None, 9)),
    "openai": ({"owned_by": "x", "capabilities": 3, "meta": 7}, (None, None, None)),
}


@pytest.mark.parametrize(("message", "known"), CARDS.values(), ids=CARDS.keys())
def test_what_a_server_tells_of_a_model_is_kept(message, known):
    async def listed(exchange):
        models = [{"id": "b", **message}, {"id": "a"}, {"id": 7}, 3]
        await exchange.send_json({"data": models})

    with model_server(faults={"listed": listed}) as server:
        llm = make_llm(server.base_url, headers=(("X-Fault", "listed"),))
        first, second = llm.list_models(deadline=soon())
        llm.close()

    assert first.name == "a"
    assert (second.functions, second.stop_words, second.context_tokens) == known


def test_models_may_be_listed_under_another_name():
    async def listed(exchange):
        await exchange.send_json({"models": [{"id": "a"}]})

    with model_server(faults={"listed": listed}) as server:
        llm = make_llm(server.base_url, headers=(("X-Fault", "listed"),))
        assert [card.name for card in llm.list_models(deadline=soon())] == ["a"]
        llm.close()
