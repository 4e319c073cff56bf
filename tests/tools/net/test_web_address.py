"""Addresses as people type them, and what is said of those that are none."""

import pytest

from tools.net.address_flaw import find_address_flaw
from tools.net.web_address import has_userinfo


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://127.0.0.1:11434/v1",
        "https://[2606:4700::1111]:8443/a?b=c",
        "https://bücher.example/",
        "https://anna:pw@example.com/",
    ],
)
def test_has_nothing_against_an_address_of_a_server(url):
    assert find_address_flaw(url) == ""


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param("", "begins with https://", id="empty"),
        pytest.param("example.com/x", "begins with https://", id="no-scheme"),
        pytest.param("ftp://example.com", "begins with https://", id="scheme"),
        pytest.param("https:///path", "begins with https://", id="no-host"),
        pytest.param("https://x:99999/", "this is not an address (", id="port"),
        pytest.param("https://x:0/", "no server listens on port 0", id="port-0"),
        pytest.param("https://[::1", "this is not an address (", id="bracket"),
        pytest.param("https://xn--0.pt/", "this is not an address (", id="punycode"),
        pytest.param("https://☃.example/", "this is not an address (", id="no-letter"),
        pytest.param("https://x/a b", "no space or line break", id="space"),
        pytest.param("https://x\n.y/", "no space or line break", id="line-break"),
    ],
)
def test_says_why_this_is_no_address(url, says):
    assert says in find_address_flaw(url)


def test_sees_a_password_in_an_address():
    assert has_userinfo("https://anna:pw@example.com/")
    assert has_userinfo("https://anna@example.com/")
    assert not has_userinfo("https://example.com/@anna")
