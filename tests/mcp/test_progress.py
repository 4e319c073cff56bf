"""What a server reports while a call runs."""

import pytest

from tests.mcp.rows import make_server, take_over
from tests.mcp.servers.http_server import mcp_server
from tests.tools.rows import make_user
from tools.definition.freeze import freeze_tool
from tools.kinds.registry import call_tool
from tools.mcp.results import format_progress
from tools.models import Credential
from tools.net.deadline import Deadline
from tools.secrets import seal


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"progress": 2, "total": 3, "message": "reading"}, "reading (2 of 3)"),
        ({"progress": 0.5, "total": 1}, "0.5 of 1"),
        ({"progress": 12345}, "12,345"),
        ({"progress": 1, "message": "reading"}, "reading"),
        ({"progress": 10**400, "total": float("nan"), "message": 5}, ""),
        ({"progress": "2", "total": []}, ""),
        ({}, ""),
    ],
)
def test_progress_is_one_line(params, line):
    assert format_progress(params) == line


@pytest.mark.django_db
def test_a_report_does_not_show_the_credential(settings):
    owner, reported = make_user(), list[str]()
    with mcp_server() as running:
        settings.PRIVATE_HOSTS = running.policy
        credential = Credential.objects.create(
            name="key", owner=owner, hosts=[running.url], sealed=seal("s3cret")
        )
        server = make_server(url=running.url, owner=owner, credential=credential)
        (report,) = take_over(server, "report")
        call_tool(
            freeze_tool(report),
            {"message": "got s3cret"},
            deadline=Deadline(seconds=60),
            on_progress=reported.append,
        )

    assert reported == ["got [secret] (1 of 2)"]
