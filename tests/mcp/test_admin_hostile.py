"""What hostile servers answer when an admin asks for their tools."""

import json

import pytest
from django.test import Client

from tests.mcp.rows import make_server
from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_user
from tools.mcp_offer import Offer
from tools.mcp_servers.import_tools import import_mcp_tools
from tools.models import Tool

pytestmark = pytest.mark.django_db

PLAIN = {"name": "plain", "description": "Adds.", "inputSchema": {"type": "object"}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
OBJECT = '{"type": "object", "properties": {"a": %s}}'


def deep(levels):
    return OBJECT % ('{"properties": {"a": ' * levels + "{}" + "}}" * levels)


def offered(name='"bad"', *, description='"x"', schema='{"type": "object"}', more=""):
    """Return one offer as the server writes it."""
    said = f'"name": {name}, "description": {description}, "inputSchema": {schema}'
    return f"{{{said}{more}}}"


@pytest.fixture
def asked(settings):
    """Return what an admin sees who asks a server with some more offers."""

    def ask(*texts, tool=None):
        def answer(got):
            request = got.json()
            if request["method"] == "initialize":
                result = json.dumps(HELLO)
            else:
                result = f'{{"tools": [{", ".join((json.dumps(PLAIN), *texts))}]}}'
            number = json.dumps(request.get("id"))
            return Answer(
                f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}'.encode()
            )

        with serve(answer) as running:
            settings.PRIVATE_HOSTS = f"mcp=127.0.0.1:{running.url.split(':')[2]}"
            server = make_server(url=running.url, name="Hostile")
            if tool is not None:
                tool(server)
            client = Client()
            client.force_login(make_user("root", is_staff=True, is_superuser=True))
            there = f"/admin/tools/mcpserver/{server.pk}/tools/"
            shown = client.post(there)
            digest = Offer.model_validate(PLAIN).digest
            chosen = [f"{digest} plain", f"{digest} bad", "x bad"]
            client.post(there, {"import": "1", "offer": chosen})
        assert shown.status_code == 200
        assert not Tool.objects.filter(enabled=True).exists()
        return shown.content.decode()

    return ask


CANNOT_STORE = "it has a character or number that cannot be stored"
OFFERS = {
    "NUL in the name": (offered(r'"a\u0000b"'), "its name has spaces"),
    "half a character in the name": (offered(r'"a\ud800b"'), "its name has spaces"),
    "a name of a megabyte": (
        offered('"' + "n" * 999_999 + '"'),
        "is longer than 128 characters",
    ),
    "an empty name": (offered('""'), "its name has spaces"),
    "NUL in the description": (offered(description=r'"a\u0000b"'), CANNOT_STORE),
    "half a character in it": (offered(description=r'"a\ud800b"'), CANNOT_STORE),
    "a description of 9 MB": (
        offered(description='"' + "d" * (9 << 20) + '"'),
        "its description is longer than 20000 characters",
    ),
    "a large number in the schema": (
        offered(schema=OBJECT % '{"maximum": 1e999}'),
        "a number or a character that cannot be stored",
    ),
    "NaN in the schema": (
        offered(schema=OBJECT % '{"default": NaN}'),
        "a number or a character that cannot be stored",
    ),
    "NUL in the schema": (
        offered(schema=OBJECT % r'{"enum": ["\u0000"]}'),
        "a number or a character that cannot be stored",
    ),
    "half a character as property": (
        offered(schema=r'{"type": "object", "properties": {"\ud800": {}}}'),
        "a number or a character that cannot be stored",
    ),
    "a schema of a megabyte": (
        offered(schema=OBJECT % ('{"title": "' + "t" * 999_999 + '"}')),
        "its schema is larger than 100000 characters",
    ),
    "a schema that is none": (offered(schema=OBJECT % "5"), "Not a valid JSON Schema"),
    "a deep schema": (offered(schema=deep(60)), "nested too deeply"),
    "a pattern for ever": (
        offered(schema=OBJECT % '{"pattern": "(a+)+$"}'),
        "repeats a repetition",
    ),
    "a reference to elsewhere": (
        offered(schema=OBJECT % '{"$ref": "http://127.0.0.1:1/"}'),
        "leads outside the schema",
    ),
    "NUL in a hint": (
        offered(more=r', "annotations": {"title": "\u0000"}'),
        CANNOT_STORE,
    ),
    "a large number as hint": (
        offered(more=', "annotations": {"readOnlyHint": 1e999}'),
        CANNOT_STORE,
    ),
}


@pytest.mark.parametrize(("text", "sentence"), OFFERS.values(), ids=OFFERS.keys())
def test_an_offer_that_cannot_be_taken_says_why_beside_one_that_can(
    asked, text, sentence
):
    shown = asked(text)

    assert sentence in shown
    assert shown.count('name="offer"') == 1
    assert len(shown) < 100_000
    assert [tool.name for tool in Tool.objects.all()] == ["plain"]


ANSWERS = {
    "a description of 11 MB": (
        offered(description='"' + "d" * (11 << 20) + '"'),
        "larger than",
    ),
    "no end of brackets": (offered(schema='{"a":' * 100_000), "not JSON"),
    "a name that is no text": (offered("[]"), "does not speak MCP"),
    "a description that is none": (offered(description="1e999"), "does not speak MCP"),
    "a schema that is no object": (offered(schema="NaN"), "does not speak MCP"),
}


@pytest.mark.parametrize(("text", "sentence"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_cannot_be_read_is_a_sentence(asked, text, sentence):
    shown = asked(text)

    assert sentence in shown
    assert 'name="offer"' not in shown
    assert not Tool.objects.exists()


@pytest.mark.parametrize("levels", [60, 200, 400, 430, 450, 470, 600])
def test_no_depth_of_a_schema_is_an_error(asked, levels):
    shown = asked(offered(schema=deep(levels)))

    assert "nested too deeply" in shown or "Discovery failed" in shown


@pytest.mark.parametrize(
    "change",
    [
        offered('"ours"', description=r'"a\u0000\ud800b"'),
        offered('"ours"', schema=OBJECT % r'{"maximum": 1e999, "title": "\ud800"}'),
        offered('"ours"', description='"' + "d" * (9 << 20) + '"'),
        offered('"ours"', schema=deep(200)),
        offered('"ours"', schema=OBJECT % ('{"title": "' + "t" * 999_999 + '"}')),
        offered('"ours"', more=r', "annotations": {"x": [1e999, "\u0000"]}'),
    ],
    ids=["texts", "numbers", "long", "deep", "large", "hints"],
)
def test_a_tool_that_its_server_makes_hostile_is_switched_off_and_says_why(
    asked, change
):
    def take(server):
        first = Offer.model_validate({**PLAIN, "name": "ours"})
        chosen = {"ours": first.digest}
        (tool,) = import_mcp_tools(server, [first], chosen, by=server.owner)
        Tool.objects.filter(pk=tool.pk).update(enabled=True)

    asked(change, tool=take)

    tool = Tool.objects.get(name="ours")
    client = Client()
    client.force_login(make_user("root"))
    page = client.get(f"/admin/tools/mcpserver/changes/{tool.pk}/")
    assert page.status_code == 200
    assert len(tool.pin.flaw) > 20
    assert tool.pin.flaw in page.content.decode()
