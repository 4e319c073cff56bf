"""The tool `web_page` against a server on loopback."""

import gzip
import io
import sys

import pytest

from tests.tools.http_server import Answer, loopback, serve
from tests.tools.make import call_builtin
from tools.builtin.web_page import MAX_PAGE_CHARACTERS, MAX_TAGS, fetch_page_text
from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy

LINE = "The leaves are heated soon after they were picked, and so they stay green. "
ARTICLE = (
    "<html><head><title>Green &amp; white tea</title><script>steal()</script></head>"
    "<body><nav><a href='/a'>Menu of the shop</a></nav><article><h1>Green tea</h1>"
    f"<p>{LINE * 4}</p><ul><li>sencha</li><li>longjing</li></ul><p>{LINE}</p>"
    "</article><footer>Imprint of the shop</footer></body></html>"
)


def html(text: str) -> Answer:
    return Answer(text.encode(), content_type="text/html; charset=utf-8")


def read(server, start=0, **more):
    return fetch_page_text(
        f"{server.url}/tea",
        start,
        deadline=Deadline(seconds=30),
        policy=loopback(),
        **more,
    )


def test_the_main_text_is_returned_without_what_is_around_it():
    with serve(lambda got: html(ARTICLE)) as server:
        message = read(server)

    assert message["title"] == "Green & white tea"
    assert "heated soon after" in message["text"]
    assert "- sencha" in message["text"]
    for around in ("Menu of", "Imprint", "steal"):
        assert around not in message["text"]
    assert "next_start" not in message


def test_a_long_page_is_read_in_pieces():
    words = " ".join(f"Sentence number {n} is here." for n in range(2_000))
    with serve(lambda got: html(f"<article><p>{words}</p></article>")) as server:
        first = read(server)
        second = read(server, first["next_start"])

    assert len(first["text"]) == first["next_start"] == MAX_PAGE_CHARACTERS
    assert (first["text"] + second["text"])[: len(words)] == words[
        : 2 * MAX_PAGE_CHARACTERS
    ]


def test_a_page_that_is_packed_under_the_name_of_a_page_is_not_unpacked():
    packed = io.BytesIO()
    with gzip.GzipFile("<html>", "wb", fileobj=packed) as file:
        file.write(ARTICLE.encode())
    answer = Answer(packed.getvalue(), content_type="text/html")

    with serve(lambda got: answer) as server:
        try:
            text = read(server)["text"]
        except ToolFailed as failed:
            text = str(failed)

    assert "heated soon after" not in text


def test_text_in_another_encoding_is_read():
    page = f"<html><meta charset=gb18030><article><p>{'绿茶是不发酵的茶。' * 20}</p>"
    answer = Answer(page.encode("gb18030"), content_type="text/html")
    with serve(lambda got: answer) as server:
        assert "绿茶是不发酵的茶。" in read(server)["text"]


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "application/json"])
def test_text_and_json_are_returned_as_they_are(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with serve(lambda got: Answer(b'{"a": 1}', content_type=kind)) as server:
        assert read(server)["text"] == '{"a": 1}'


def test_without_the_optional_part_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with (
        serve(lambda got: html(ARTICLE)) as server,
        pytest.raises(ToolFailed, match="pip install trafilatura"),
    ):
        read(server)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (html("<html><body></body></html>"), "made by scripts"),
        (html("<p>a" * (MAX_TAGS + 1)), "too many parts"),
        (html("<html><script>x()</script></html>"), "made by scripts"),
        (Answer(b"\x89PNG", content_type="image/png"), "it is image/png"),
        (Answer(b" ", content_type="text/plain"), "it is empty"),
        (Answer(b"gone", status=404, content_type="text/html"), "answered 404"),
        (Answer(b"x" * (5 << 20), content_type="text/html"), "larger than"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(answer, why):
    with (
        serve(lambda got: answer) as server,
        pytest.raises(ToolFailed, match=why),
    ):
        read(server)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "not an address of a web page"),
        ("javascript:alert(1)", "not an address of a web page"),
        ("http://[", "not an address of a web page"),
        ("", "not an address of a web page"),
        ("http://127.0.0.1:1/", "not public"),
        ("http://169.254.169.254/latest/", "clouds hand out credentials"),
    ],
)
def test_an_address_that_is_not_for_it_is_refused(url, why):
    with pytest.raises(ToolFailed, match=why):
        call_builtin("web_page", "web_page", url=url)


def test_offline_it_says_so():
    with pytest.raises(ToolFailed, match=r"Cannot get an answer from http://127"):
        fetch_page_text(
            "http://127.0.0.1:1/", 0, deadline=Deadline(seconds=30), policy=loopback()
        )


def test_only_the_hosts_of_the_tool_are_reached():
    policy = NetPolicy(only_hosts=("docs.example",))
    with pytest.raises(ToolFailed, match="not among the hosts"):
        fetch_page_text(
            "https://a.example/", 0, deadline=Deadline(seconds=30), policy=policy
        )
