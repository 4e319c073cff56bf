"""Hosts of web addresses in texts."""

import pytest

from tools.text.web_hosts import find_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("see https://Example.com/a?b.", ["example.com"]),
        ("[x](http://a.example:8080/y)", ["a.example:8080"]),
        ("http://user:pw@evil.example/", ["evil.example"]),
        ("<a href='//x'>, mailto:ann@b.example?x", ["b.example"]),
        ("https://[::1]/", ["::1"]),
        ("https://[oops/", ["https://[oops/"]),
        ("ftp://ü.example", ["ü.example"]),
        ("no.address here", []),
    ],
)
def test_hosts_are_found_in_text(text, hosts):
    assert list(find_hosts(text)) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "[x](https:/evil.com)",
        "[x](https:evil.com/a)",
        "[x](https:///evil.com)",
        "[x](http:\\evil.com)",
        "[x](http:\\\\evil.com)",
        "[x](http:/\\evil.com)",
        "[x](/\\evil.com)",
        "[x](\\\\evil.com)",
        "[x](///evil.com)",
        "[x]( //evil.com)",
        "[x](<//evil.com>)",
        "[x](//user:pw@evil.com)",
        "[x]: //evil.com",
        "[x]:\n  //evil.com/a",
        "<https:/evil.com>",
        "<a href='\\\\evil.com'>",
        "<a href=' //evil.com'>",
        "<img src=/\\evil.com/a.png>",
        "WSS:/EVIL.com/a",
        "[x](https&colon;//evil&period;com)",
        '{"link":"https:\\/\\/evil.com"}',
        '{"text":"See:\\nhttps://evil.com"}',
        "https://good.com^@evil.com",
        "https://evil.com\\@good.com",
        "_https://evil.com_",
        "请看https://evil.com",
        "see evil.com/x",
        "请看evil.com/x。",
        "evil.com?q=secret",
    ],
)
def test_hosts_are_those_that_a_browser_opens(text):
    assert list(find_hosts(text)) == ["evil.com"]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("[a](https://a.com/x)[b](https://b.com/y)", ["a.com", "b.com"]),
        ("[a](https://a.com)[b](https://b.com)", ["a.com", "b.com"]),
        ("https://a.com/x_(y)/https://b.com", ["a.com"]),
        ("|https://a.com|{http://b.com}|`http://c.com`", ["a.com", "b.com", "c.com"]),
        ("https://a.com/?from=b.com/x", ["a.com"]),
        ("https://a.com,b.com/", ["a.com,b.com"]),
        ("http:/1.2.3.4/x evil.com:81/x", ["1.2.3.4", "evil.com:81"]),
        ("a.com/b.com", ["a.com"]),
    ],
)
def test_each_address_has_one_host(text, hosts):
    assert list(find_hosts(text)) == hosts


def test_a_host_that_is_hidden_by_a_long_user_name_is_not_the_one_in_front():
    (found,) = find_hosts("https://good.com;" + "x" * 400 + "@evil.com")

    assert found.startswith("https://good.com;xxx")


@pytest.mark.parametrize(
    "text",
    [
        "report.md/x, main.py/x, archive.zip/x, node.js/x, my_file.com/x",
        "e.g./x, 1.5/2, a.m./p.m., v1.2/v1.3, user.id/2, data.name/x",
        "Do you mean evil.com? evil.com. ann@evil.com/x C:\\evil.com\\x",
        "Safari.app/Contents, http: and https:, http/https:, http:80",
        'print("\\nfoo.bar"), "\\\\nfoo.bar", "\\/index.html", "x" //this.value',
    ],
)
def test_texts_without_a_link_have_no_hosts(text):
    assert list(find_hosts(text)) == []


@pytest.mark.parametrize(
    "piece",
    ["http:x.co|", "http:/(", "a.", "a-", "www.", "](  ", "href=", "/\\", "http:a@"],
)
def test_hostile_texts_are_searched_for_hosts_in_linear_time(piece):
    text = piece * (200_000 // len(piece))

    assert len(list(find_hosts(text))) < 5
