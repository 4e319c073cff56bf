"""The request an HTTP tool makes of its arguments."""

import pytest
from pydantic import ValidationError

from tools.errors import ToolFailed
from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request

ORDERS = "https://api.example.com/orders"


def asked(arguments, **config):
    return build_http_request(HttpConfig(**{"url": ORDERS, **config}), arguments)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("o_1", "o_1"),
        (7, "7"),
        (True, "true"),
        ("a/b", "a%2Fb"),
        ("a b", "a%20b"),
        ("../admin", "..%2Fadmin"),
        ("%2e%2e", "%252e%252e"),
        ("x?admin=1", "x%3Fadmin%3D1"),
        ("x#y", "x%23y"),
        ("订单", "%E8%AE%A2%E5%8D%95"),
        ("@evil.example", "%40evil.example"),
        ("\\..\\x", "%5C..%5Cx"),
        ("\ud800", "%3F"),
    ],
)
def test_an_argument_stays_inside_its_part_of_the_path(value, path):
    url = asked({"id": value}, url=f"{ORDERS}/{{id}}/items").url

    assert url == f"{ORDERS}/{path}/items"


@pytest.mark.parametrize("value", ["..", "."])
def test_an_argument_cannot_leave_the_path(value):
    with pytest.raises(ToolFailed, match="cannot be part of an address"):
        asked({"id": value}, url=f"{ORDERS}/{{id}}/items")


def test_two_arguments_together_cannot_leave_the_path():
    with pytest.raises(ToolFailed, match="cannot be part of an address"):
        asked({"a": ".", "b": "."}, url=f"{ORDERS}/{{a}}{{b}}/items")


@pytest.mark.parametrize("value", [None, ""])
def test_a_path_without_its_argument_is_a_sentence(value):
    with pytest.raises(ToolFailed, match="'id' is needed"):
        asked({"id": value}, url=f"{ORDERS}/{{id}}")


def test_arguments_left_over_go_into_the_query_of_a_get():
    url = asked({"id": 1, "tag": ["a", "b"], "none": None}, url=f"{ORDERS}/{{id}}").url

    assert url == f"{ORDERS}/1?tag=a&tag=b"


def test_a_query_has_its_own_names_and_leaves_out_what_is_absent():
    url = asked(
        {"q": "a&b=c"}, query={"search": "{q}", "expand": "{expand}", "fixed": "1"}
    ).url

    assert url == f"{ORDERS}?search=a%26b%3Dc&fixed=1"


def test_a_query_in_the_address_is_filled():
    assert (
        asked({"q": "x y"}, url=f"{ORDERS}?q={{q}}&n=2").url == f"{ORDERS}?q=x%20y&n=2"
    )


def test_arguments_left_over_are_the_json_body_of_a_post():
    one = asked({"id": 1, "note": "嗨"}, method="POST", url=f"{ORDERS}/{{id}}")

    assert one.content == '{"note":"嗨"}'.encode()
    assert one.headers["content-type"] == "application/json"


def test_a_json_body_keeps_the_types_of_its_arguments():
    one = asked(
        {"n": 3, "tags": ["a"], "who": "Ann"},
        method="POST",
        json={"n": "{n}", "tags": "{tags}", "text": "Hi {who}", "no": "{no}", "x": 1},
    )

    assert one.content == b'{"n":3,"tags":["a"],"text":"Hi Ann","x":1}'


def test_a_form_is_encoded():
    one = asked({"who": "a&b"}, method="POST", form={"name": "{who}", "x": "1"})

    assert one.content == b"name=a%26b&x=1"
    assert one.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "config",
    [{}, {"query": {"input": "{input}"}}, {"url": f"{ORDERS}?input={{input}}"}],
)
def test_an_empty_text_is_no_parameter_of_the_query(config):
    assert asked("", **config).url == ORDERS
    assert asked("a", **config).url == f"{ORDERS}?input=a"


def test_one_text_is_the_placeholder_input():
    assert asked("北京", query={"q": "{input}"}).url == f"{ORDERS}?q=%E5%8C%97%E4%BA%AC"


def test_a_placeholder_is_filled_once():
    assert (
        asked({"a": "{b}", "b": "x"}, query={"q": "{a}"}).url
        == f"{ORDERS}?q=%7Bb%7D&b=x"
    )


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "é", "\0"])
def test_a_header_takes_no_other_header_with_it(value):
    with pytest.raises(ToolFailed, match="'X-Who' has line breaks"):
        asked({"who": value}, headers={"X-Who": "{who}"})


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"url": "api.example.com/x"}, "begins with https://"),
        ({"url": "ftp://example.com"}, "begins with https://"),
        ({"url": "https://"}, "begins with https://"),
        ({"url": "https:///path"}, "begins with https://"),
        ({"url": "https://{host}/x"}, "host cannot come from an argument"),
        ({"url": "https://a:b@example.com/"}, "store a password in a credential"),
        ({"url": "https://example.com:port/"}, "this is not an address"),
        ({"url": "https://xn--0.pt/"}, "this is not an address"),
        ({"headers": {"Host": "x"}}, "“Host” cannot be set"),
        ({"headers": {"X Y": "x"}}, "“X Y” cannot be set"),
        ({"headers": {"X": "a\nb"}}, "value of the header “X” cannot be sent"),
        ({"pick": "items.0"}, "not a JSON pointer"),
        ({"json": {}, "form": {}, "method": "POST"}, "one body"),
        ({"json": {}}, "GET sends no body"),
        ({"multipart": {}, "form": {}, "method": "POST"}, "one body"),
        (
            {"multipart": {"f": {"content": "x{y}"}}, "method": "POST"},
            "one placeholder",
        ),
        ({"joined": ["q"], "styles": {"q": "json"}}, "“q” has two styles"),
        ({"styles": {"q": "matrix"}}, "Input should be"),
        ({"method": "TRACE"}, "Input should be"),
        ({"max_bytes": 10**9}, "less than or equal"),
        ({"verify": False}, "Extra inputs"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(config, why):
    with pytest.raises(ValidationError, match=why):
        HttpConfig(**{"url": ORDERS, **config})
