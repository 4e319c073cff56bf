"""The tool `web_search` against servers that speak the services' formats."""

import pytest

from tests.tools.http_server import Answer, serve
from tests.tools.make import call_builtin
from tools.builtin.web_search import parse_search_settings
from tools.errors import ToolFailed

SEARXNG = {
    "query": "tea",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.example/tea",
            "title": "Tea",
            "content": "Leaves\n in   water",
            "engine": "duckduckgo",
            "score": 1.0,
        },
        {"url": "https://b.example", "title": "More", "content": None},
        "nonsense",
    ],
    "answers": [],
    "unresponsive_engines": [["x", "timeout"]],
}
BRAVE = {
    "type": "search",
    "query": {"original": "tea"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Tea",
                "url": "https://a.example/tea",
                "description": "Leaves in water",
                "is_source_local": False,
            }
        ],
    },
}
TAVILY = {
    "query": "tea",
    "answer": None,
    "results": [
        {
            "title": "Tea",
            "url": "https://a.example/tea",
            "content": "Leaves in water",
            "score": 0.9,
            "raw_content": None,
        }
    ],
    "response_time": 0.4,
}
FIRST = {"title": "Tea", "url": "https://a.example/tea", "text": "Leaves in water"}
FORMATS = {"searxng": SEARXNG, "brave": BRAVE, "tavily": TAVILY}


def set_up(settings, kind, server, key="k3y"):
    settings.WEB_SEARCH = f"{kind}={server.url}"
    settings.WEB_SEARCH_KEY = key


@pytest.mark.parametrize(("kind", "message"), FORMATS.items())
def test_results_are_returned_in_one_shape(settings, kind, message):
    with serve(lambda got: Answer(message)) as server:
        set_up(settings, kind, server)
        found = call_builtin("web_search", "web_search", query="tea", limit=3)

    assert found[0] == FIRST


def test_searxng_is_asked_for_json(settings):
    with serve(lambda got: Answer(SEARXNG)) as server:
        set_up(settings, "searxng", server, key="")
        found = call_builtin("web_search", "web_search", query="green tea")

    assert (server.got[0].path, server.got[0].query) == (
        "/search",
        {"q": "green tea", "format": "json"},
    )
    assert found[1] == {"title": "More", "url": "https://b.example", "text": ""}
    assert len(found) == 2


def test_brave_is_asked_with_its_key(settings):
    with serve(lambda got: Answer(BRAVE)) as server:
        set_up(settings, "brave", server)
        call_builtin("web_search", "web_search", query="tea", limit=99)

    got = server.got[0]
    assert (got.path, got.query) == (
        "/res/v1/web/search",
        {"q": "tea", "count": "20"},
    )
    assert got.headers["x-subscription-token"] == "k3y"


def test_tavily_is_asked_with_its_key(settings):
    with serve(lambda got: Answer(TAVILY)) as server:
        set_up(settings, "tavily", server)
        call_builtin("web_search", "web_search", query="tea", limit=3)

    got = server.got[0]
    assert (got.method, got.path) == ("POST", "/search")
    assert got.json() == {"query": "tea", "max_results": 3}
    assert got.headers["authorization"] == "Bearer k3y"


@pytest.mark.parametrize(
    ("kind", "answer", "why"),
    [
        ("searxng", Answer(b"Forbidden", 403, content_type="text/html"), "403: its se"),
        ("searxng", Answer(b"<html>", content_type="text/html"), "format json"),
        ("brave", Answer({"error": {"detail": "Key k3y is bad."}}, 422), "422: Key .s"),
        ("tavily", Answer({"detail": {"error": "No plan."}}, 432), "432: No plan"),
        ("tavily", Answer({"detail": [{"msg": "x"}]}, 422), "answered 422"),
        ("brave", Answer([], 200), "answered 200"),
    ],
)
def test_a_refusal_is_a_sentence_without_the_key(settings, kind, answer, why):
    with serve(lambda got: answer) as server:
        set_up(settings, kind, server)
        with pytest.raises(ToolFailed, match=why) as failed:
            call_builtin("web_search", "web_search", query="tea")

    assert "k3y" not in str(failed.value)


@pytest.mark.parametrize(("kind", "message"), FORMATS.items())
def test_no_results_are_an_empty_list(settings, kind, message):
    empty = {key: {} if key == "web" else [] for key in message}
    with serve(lambda got: Answer(empty)) as server:
        set_up(settings, kind, server)
        assert call_builtin("web_search", "web_search", query="tea") == []


def test_a_server_that_echoes_the_key_does_not_show_it(settings):
    message = {"results": [{"title": "k3y", "url": "u", "content": "k3y"}]}
    with serve(lambda got: Answer(message)) as server:
        set_up(settings, "tavily", server)
        found = call_builtin("web_search", "web_search", query="tea")

    assert "k3y" not in str(found)


def test_without_a_service_it_says_what_the_operator_does(settings):
    settings.WEB_SEARCH = ""

    with pytest.raises(ToolFailed, match="names one in AGENTSITE_WEB_SEARCH"):
        call_builtin("web_search", "web_search", query="tea")


def test_offline_it_says_so(settings):
    settings.WEB_SEARCH = "searxng=http://127.0.0.1:1"

    with pytest.raises(ToolFailed, match="Cannot get an answer from http://127"):
        call_builtin("web_search", "web_search", query="tea")


def test_only_the_very_address_of_the_service_is_let_through(settings):
    def elsewhere(got):
        return Answer(status=302, headers={"location": f"{inner.url}/secret"})

    with (
        serve(lambda got: Answer(SEARXNG)) as inner,
        serve(elsewhere) as server,
    ):
        set_up(settings, "searxng", server)
        with pytest.raises(ToolFailed, match="not public"):
            call_builtin("web_search", "web_search", query="tea")

    assert inner.got == []


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("google", "", "none of searxng, brave, tavily"),
        ("searxng", "", "needs its address"),
        ("searxng=nowhere", "", "needs its address"),
        ("brave", "", "needs a key in AGENTSITE_WEB_SEARCH_KEY"),
    ],
)
def test_a_wrong_variable_is_a_sentence(text, key, why):
    with pytest.raises(ValueError, match=why):
        parse_search_settings(text, key)


def test_the_services_own_address_is_the_default():
    brave = parse_search_settings("brave", "k")

    assert brave is not None
    assert brave.url == "https://api.search.brave.com"
    assert "k" not in repr(brave).replace("brave", "").replace("kind", "")
