"""What a call would send, shown without sending it."""

import pytest

from tests.tools.rows import make_tool, make_user
from tools.credentials import CredentialRefused
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.models import Credential, Tool
from tools.secrets import seal
from tools.services.show_request import show_request

pytestmark = pytest.mark.django_db


def http_tool(credential=None, **config) -> Tool:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    return make_tool(
        kind="http",
        effect="idempotent",
        args_schema=schema,
        config={"method": "PUT", "url": "https://a.example/o/{id}", **config},
        credential=credential,
    )


def credential(**fields) -> Credential:
    return Credential.objects.create(
        **{
            **{"name": "c", "owner": make_user(), "hosts": ["a.example"]},
            **{"sealed": seal("s3cret"), **fields},
        }
    )


def shown(tool: Tool, tool_input) -> str:
    return show_request(freeze_tool(tool), tool_input)


def test_an_http_request_is_shown_whole():
    tool = http_tool(headers={"Accept": "text/plain"}, json={"n": "{n}", "id": "{id}"})

    assert shown(tool, {"id": "a b", "n": 2}).splitlines() == [
        "PUT https://a.example/o/a%20b",
        "idempotency-key: RUN:STEP",
        "Accept: text/plain",
        "content-type: application/json",
        "",
        '{"n":2,"id":"a b"}',
    ]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"kind": "bearer"}, "authorization: Bearer [secret]"),
        ({"kind": "basic", "field": "ann"}, "authorization: Basic [secret]"),
        ({"kind": "header", "field": "X-Key"}, "X-Key: [secret]"),
        ({"kind": "query", "field": "key"}, "PUT https://a.example/o/7?key=[secret]"),
    ],
)
def test_the_secret_is_covered(fields, line):
    text = shown(http_tool(credential(**fields)), {"id": "7"})

    assert line in text.splitlines()
    assert "s3cret" not in text


def test_a_credential_of_another_host_is_said():
    with pytest.raises(CredentialRefused, match="not bound to the host"):
        shown(http_tool(credential(hosts=["b.example"])), {"id": "7"})


def test_arguments_that_cannot_be_sent_are_said():
    with pytest.raises(ToolFailed, match="cannot be part of an address"):
        shown(http_tool(), {"id": ".."})


def test_a_function_is_shown_with_its_arguments():
    assert shown(make_tool(), {"a": 1}).splitlines()[0] == "tests.tools.functions:add"


def test_a_query_is_shown_with_its_database():
    tool = make_tool(
        kind="sql", config={"connection": "shop", "query": "SELECT :id"}, args_schema={}
    )

    assert "On the database 'shop', reading only:\nSELECT :id" in shown(tool, {"id": 1})


def test_code_is_shown_what_it_would_get():
    tool = make_tool(kind="python", config={"code": "x * 2"}, args_schema={})

    assert shown(tool, {"x": 21}) == '{\n  "x": 21\n}'
