"""What is wrong with a definition, known before a call."""

import pytest

from tests.tools import functions  # noqa: F401  # registers them
from tools.kinds.config_flaws import CHECKS, flaws_of_config
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

    assert flaws_of_config(kind, config) == []


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
    assert sentence in " ".join(flaws_of_config(kind, config))


def test_every_kind_is_checked():
    assert set(CHECKS) == set(KINDS)
