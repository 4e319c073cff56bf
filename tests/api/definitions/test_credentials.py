"""Credentials and MCP servers in the API: where they lead is for staff."""

import pytest
from django.contrib.auth.models import Permission, User

from tests.api.make_client import Api
from tests.make import make_user
from tools.models import Credential, McpServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared() -> None:
    """A credential and a server that everyone may use."""
    fields = {"owner": make_user("ann"), "visibility": "everyone"}
    key = Credential.objects.create(
        name="Key", kind="header", field="X-Key", hosts=["a.example"], **fields
    )
    McpServer.objects.create(
        name="Files",
        transport="http",
        url="https://a.example/mcp",
        credential=key,
        **fields,
    )


def read_both(user: User) -> list[dict]:
    """Return both, having checked that the list shows what the row shows."""
    api, found = Api(user), []
    for path in ("credentials", "mcp-servers"):
        [row] = api.get(path).json()["data"]
        assert api.get(f"{path}/{row['id']}").json() == row
        found.append(row)
    return found


@pytest.mark.parametrize("is_staff", [False, True])
def test_people_without_permission_do_not_see_where_they_lead(shared, is_staff):
    key, server = read_both(make_user(is_staff=is_staff))

    assert (key["name"], key["kind"], server["name"]) == ("Key", "header", "Files")
    assert (key["field"], key["hosts"]) == (None, None)
    assert [server[name] for name in ("url", "command", "credential")] == [None] * 3


def test_staff_with_the_permission_see_it(shared):
    user = make_user(is_staff=True)
    codes = ["view_credential", "view_mcpserver"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codes))

    key, server = read_both(user)

    assert (key["field"], key["hosts"]) == ("X-Key", ["a.example"])
    assert (server["url"], server["command"]) == ("https://a.example/mcp", "")
    assert server["credential"] == "key"


@pytest.mark.parametrize("path", ["credentials", "mcp-servers"])
def test_words_are_searched_for_in_names_and_slugs(shared, path):
    McpServer.objects.update(name="Storage", slug="team-files")
    Credential.objects.update(name="Storage", slug="team-files")
    api = Api(make_user())

    def count(words: str) -> int:
        return len(api.get(f"{path}?q={words}").json()["data"])

    assert [count(words) for words in ("storage", "team", "team+storage")] == [1, 1, 1]
    assert count("storage+other") == 0
