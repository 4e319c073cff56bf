"""What is wrong with a definition, known before a call."""

import pytest

from tests.tools import functions  # noqa: F401  # registers them
from tools.kinds.config_checks import CONFIG_CHECKS, find_config_flaws, find_name_flaws
from tools.kinds.registry import KINDS


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("function", {"function": "tests.tools.functions:add"}),
        ("http", {"method": "GET", "url": "https://api.example.com/users/{id}"}),
        ("mcp", {"tool": "add", "digest": "00"}),
        ("python", {"code": "a + b"}),
        ("sql", {"connection": "shop", "query": "SELECT 1"}),
        ("unheard of", {"anything": 1}),
    ],
)
def test_a_good_definition_has_no_flaw(kind, config, settings):
    settings.SQL_CONNECTIONS = "shop=sqlite:////tmp/shop.db"

    assert find_config_flaws(kind, config) == []


@pytest.mark.parametrize(
    ("kind", "config", "sentence"),
    [
        ("function", {}, "The function '' is not registered"),
        ("function", {"function": "os:system"}, "'os:system' is not registered"),
        ("http", {"url": "nowhere"}, "url: an address begins with https://"),
        ("http", {}, "url: Field required."),
        ("http", {"url": "https://a.example", "code": "x"}, "code: Extra inputs"),
        ("mcp", {}, "tool: Field required."),
        ("python", {"code": "a +"}, "Line 1: invalid syntax."),
        ("python", {}, "code: Field required."),
        ("sql", {"connection": "shop"}, "There is no database 'shop'"),
    ],
)
def test_a_flaw_is_a_sentence(kind, config, sentence):
    assert sentence in " ".join(find_config_flaws(kind, config))


def test_every_kind_is_checked():
    assert set(CONFIG_CHECKS) == set(KINDS)


URL = {"method": "PUT", "url": "https://a.example/{id}"}
HEADER = {"url": "https://a.example", "headers": {"A": "{input}"}}
LIST = {"connection": "shop", "query": "SELECT ':no' WHERE id = :id AND n::text = '1'"}


@pytest.mark.parametrize(
    ("kind", "config", "schema", "flaw"),
    [
        ("http", URL, {"properties": {"id": {}}}, None),
        ("http", URL, {"properties": {}}, "{id} is not an argument … which has none."),
        ("http", URL, None, "{id} is not an argument … Arguments: input."),
        ("http", HEADER, None, None),
        (
            "http",
            HEADER,
            {"properties": {"a": {}}},
            "{input} is not an argument … Arguments: a.",
        ),
        ("http", URL, {"allOf": [{"properties": {"id": {}}}]}, None),
        ("sql", LIST, {"properties": {"id": {}}}, None),
        (
            "sql",
            LIST,
            {"properties": {"a": {}}},
            ":id is not an argument … Arguments: a.",
        ),
        ("sql", {"connection": "shop"}, None, None),
        ("python", {"code": "x"}, None, None),
    ],
)
def test_each_name_of_a_definition_is_an_argument(kind, config, schema, flaw):
    message = find_name_flaws(kind, config, schema)

    assert len(message) == (flaw is not None)
    for one in message:
        assert all(part in one for part in flaw.split(" … "))
