"""The Wikipedia tools against a server that speaks MediaWiki's format."""

import pytest

from tests.tools.http_server import Answer, loopback, serve
from tests.tools.make import call_builtin
from tools.builtin.wikipedia import fetch_wikipedia_page, search_wikipedia
from tools.errors import ToolFailed
from tools.net.deadline import Deadline

FOUND = {
    "batchcomplete": True,
    "query": {
        "searchinfo": {"totalhits": 1},
        "search": [
            {
                "ns": 0,
                "title": "Tea",
                "pageid": 1,
                "snippet": 'An <span class="searchmatch">aromatic</span> drink',
            }
        ],
    },
}
PAGE = {
    "query": {"pages": [{"pageid": 1, "title": "Tea", "extract": "Tea is a drink."}]}
}
MISSING = {"query": {"pages": [{"title": "Teaa", "missing": True}]}}


def asking(server):
    return {
        "api": f"{server.url}/w/api.php",
        "deadline": Deadline(seconds=5),
        "policy": loopback(),
    }


def test_a_search_returns_titles_and_plain_text():
    with serve(lambda got: Answer(FOUND)) as server:
        found = search_wikipedia("tea & milk", 99, **asking(server))

    assert found == [{"title": "Tea", "text": "An aromatic drink"}]
    assert server.got[0].query["srsearch"] == "tea & milk"
    assert server.got[0].query["srlimit"] == "20"


def test_a_page_returns_its_text():
    with serve(lambda got: Answer(PAGE)) as server:
        assert fetch_wikipedia_page("Tea", **asking(server)) == "Tea is a drink."


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(MISSING), "no page 'Teaa'"),
        (Answer({"error": {"info": "Too many."}}), "answered 200: Too many."),
        (Answer({}, status=429), "answered 429: no reason given"),
        (Answer(b"<html>", content_type="text/html"), "text/html instead of JSON"),
        (Answer([]), "answered 200"),
    ],
)
def test_what_is_no_page_is_a_sentence(answer, why):
    with serve(lambda got: answer) as server, pytest.raises(ToolFailed, match=why):
        fetch_wikipedia_page("Teaa", **asking(server))


@pytest.mark.parametrize("language", ["evil.example/", "EN", "", "a@b", "x" * 40])
def test_a_language_cannot_name_another_host(language):
    with pytest.raises(ToolFailed, match="not a language code"):
        call_builtin("wikipedia", "wikipedia_page", title="Tea", language=language)
