"""What a call reaches, in a line."""

import pytest

from tests.make import make_user
from tools.kinds.call_target import describe_call_target
from tools.models import Credential, McpServer
from tools.spec import ToolSpec

pytestmark = pytest.mark.django_db


def spec(kind, **config):
    return ToolSpec(name="t", kind=kind, config=config)


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        pytest.param(
            spec("http", method="POST", url="https://b.example.com/pay/{id}"),
            "POST https://b.example.com/pay/a%2F7",
            id="http, the arguments in their places",
        ),
        pytest.param(
            spec("http", url="https://b.example.com/x?api_key=s3cret"),
            "GET https://b.example.com/x?api_key=[secret]&id=a%2F7",
            id="http, without what could be a secret",
        ),
        pytest.param(
            spec("http", url="https://b.example.com/{gone}"),
            "GET https://b.example.com/{gone}",
            id="http, an argument left out",
        ),
        pytest.param(
            spec("http", url=7),
            "An HTTP request that is not configured correctly",
            id="no",
        ),
        pytest.param(spec("sql", connection="erp"), "The database 'erp'", id="sql"),
        pytest.param(spec("function", function="a:b"), "function a:b", id="function"),
        pytest.param(spec("python"), "in a sandbox", id="python"),
        pytest.param(spec("mcp", mcp_server=9), "that is gone", id="mcp, gone"),
        pytest.param(spec("odd"), "A tool of the kind odd", id="unknown"),
    ],
)
def test_says_where_a_call_goes(tool, line):
    assert line in describe_call_target(tool, {"id": "a/7"})


def test_names_server_and_credential_and_changes_with_the_address():
    ann = make_user("ann")
    secret = Credential.objects.create(owner=ann, name="mail", hosts=["m.example.com"])
    server = McpServer.objects.create(
        owner=ann, name="mails", url="https://m.example.com/mcp", credential=secret
    )
    tool = spec("mcp", mcp_server=server.pk, tool="send")
    before = describe_call_target(tool, {})
    McpServer.objects.update(url="https://evil.example.com/mcp")

    assert before == (
        "send of the MCP server 'mails' at https://m.example.com/mcp "
        "with the credential 'mail'"
    )
    assert "evil" in describe_call_target(tool, {})
