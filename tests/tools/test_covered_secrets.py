"""A secret that a server echoes, in whatever form it was sent."""

from base64 import b64encode

import pytest

from tools.credentials import CredentialRefused, OpenCredential
from tools.net.http_exchange import Request

SECRET = 'p/ä "s" & 1'
ECHOES = [
    'it was p/ä "s" & 1!',
    "it was p%2F%C3%A4%20%22s%22%20%26%201!",
    "it was p%2F%C3%A4+%22s%22+%26+1!",
    'it was p/ä \\"s\\" & 1!',
    'it was p/\\u00e4 \\"s\\" & 1!',
    'it was p\\/\u00e4 \\"s\\" & 1!',
    'it was p\\/\\u00E4 \\"s\\" & 1!',
    "it was p%2f%c3%a4%20%22s%22%20%26%201!",
    "it was p/\u00e4 &quot;s&quot; &amp; 1!",
    f"it was {b64encode(f'ann:{SECRET}'.encode()).decode()}!",
]


@pytest.mark.parametrize("echo", ECHOES)
def test_each_way_to_write_it_is_covered(echo):
    opened = OpenCredential("basic", "ann", ("example.com",), SECRET)

    assert opened.mask_secret(echo) == "it was [secret]!"


def test_names_and_texts_in_json_are_covered_and_nothing_else():
    opened = OpenCredential("bearer", "", ("example.com",), "s3cret")

    assert opened.mask_secret_in(
        {"s3cret": ["Bearer s3cret", 3, None, {"a": True}]}
    ) == {"[secret]": ["Bearer [secret]", 3, None, {"a": True}]}


def test_without_a_secret_nothing_is_covered():
    assert OpenCredential("bearer", "", (), "").mask_secret("a b") == "a b"


def test_a_secret_with_percent_signs_and_backslashes_is_covered_too():
    opened = OpenCredential("bearer", "", (), "50%AB\\u00e4")

    assert opened.mask_secret("it was 50%AB\\u00e4!") == "it was [secret]!"


@pytest.mark.parametrize("name", ["Host", "Expect", "Transfer-Encoding"])
def test_a_secret_never_becomes_a_header_of_the_connection(name):
    opened = OpenCredential("header", name, ("example.com",), "s3cret")

    with pytest.raises(CredentialRefused, match="nobody may set"):
        opened.apply_to(Request("https://example.com/"))
