"""Writing credentials and MCP servers through the API."""

import json

import pytest
from django.contrib.auth.models import Group, Permission

from runs.models import ApiToken, IdempotencyKey
from tests.api.make_client import Api, fields_of
from tests.make import make_tool, make_user
from tests.mcp.rows import command_line
from tests.mcp.servers.http_server import mcp_server
from tests.tools.http_server import Answer, serve
from tools.models import AuditEntry, Credential, McpServer, Tool
from tools.secrets import seal, unseal

pytestmark = pytest.mark.django_db

ALL = tuple(ApiToken.Scope.values)
SECRET = "s3cret-of-the-key"
KEY = {"name": "Key", "hosts": ["api.example.com"], "secret": SECRET}
SERVER = {"name": "Files", "url": "https://mcp.example.com/mcp"}


def make_manager(name="manager", *codenames):
    user = make_user(name, is_staff=True)
    found = Permission.objects.filter(content_type__app_label="tools")
    user.user_permissions.set(
        found.filter(codename__in=codenames) if codenames else found
    )
    return user


@pytest.fixture
def manager():
    return make_manager()


@pytest.fixture
def api(manager):
    return Api(manager, scopes=ALL)


@pytest.fixture
def running(settings):
    with mcp_server(json=True) as server:
        settings.PRIVATE_HOSTS = server.policy
        yield server


def everything_stored():
    """Return all audit entries and idempotency keys as text."""
    rows = [*AuditEntry.objects.values(), *IdempotencyKey.objects.values()]
    return json.dumps(rows, default=str)


def test_a_secret_is_written_and_never_returned(api, manager):
    made = api.post("credentials", KEY, Idempotency_Key="a")
    path = f"credentials/{made.json()['id']}"
    again = api.post("credentials", KEY, Idempotency_Key="a")
    read, listed = api.get(path), api.get("credentials")
    changed = api.patch(path, {"secret": "another-s3cret"})

    assert (made.status_code, again.status_code) == (201, 200)
    row = Credential.objects.get()
    assert (row.owner, unseal(row.sealed)) == (manager, "another-s3cret")
    shown = "".join(one.text for one in (made, again, read, listed, changed))
    assert made.json()["has_secret"]
    for text in (shown, everything_stored()):
        assert SECRET not in text
        assert "another-s3cret" not in text
        assert row.sealed not in text
    entry = AuditEntry.objects.filter(noun="credential", action="made").get()
    assert (entry.by, entry.way) == ("manager", "api")


def test_what_is_left_out_of_a_credential_stays(api, manager):
    group = Group.objects.create(name="crew")
    manager.groups.add(group)
    body = {**KEY, "kind": "header", "field": "X-Key", "visibility": "groups"}
    made = api.post("credentials", {**body, "groups": ["crew"]}).json()

    changed = api.patch(f"credentials/{made['id']}", {"hosts": ["b.example"]})

    assert changed.status_code == 200, changed.text
    row = Credential.objects.get()
    assert (row.name, row.kind, row.field) == ("Key", "header", "X-Key")
    assert (row.hosts, unseal(row.sealed)) == (["b.example"], SECRET)
    assert list(row.groups.all()) == [group]
    api.patch(f"credentials/{made['id']}", {"visibility": "private"})
    assert not row.groups.exists()


def test_a_change_of_an_older_state_is_refused(api):
    for path, body in (("credentials", KEY), ("mcp-servers", SERVER)):
        made = api.post(path, body)
        one, etag = f"{path}/{made.json()['id']}", made.headers["ETag"]

        assert made.headers["Location"].endswith(one)
        assert api.patch(one, {"name": "B"}, If_Match=etag).status_code == 200
        assert api.patch(one, {"name": "C"}, If_Match=etag).status_code == 412
        assert api.delete(one, **{"If-Match": etag}).status_code == 412
        assert api.get(one).json()["name"] == "B"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"hosts": []}, "hosts"),
        ({"hosts": ["https://a.example/path"]}, "hosts"),
        ({"kind": "header"}, "field"),
        ({"kind": "header", "field": "Host"}, "field"),
        ({"kind": "header", "field": "X Key"}, "field"),
        ({"kind": "cookie"}, "kind"),
        ({"secret": ""}, "secret"),
        ({"secret": "a\nb"}, "secret"),
        ({"secret": "ключ"}, "secret"),
        ({"sealed": "x"}, "sealed"),
        ({"owner": 1}, "owner"),
        ({"visibility": "groups"}, "groups"),
        ({"visibility": "groups", "groups": ["strangers"]}, "groups"),
    ],
)
def test_a_refused_credential_names_its_field(api, body, field):
    Group.objects.create(name="strangers")

    refused = api.post("credentials", {**KEY, **body})

    assert refused.status_code == 422, refused.text
    assert fields_of(refused)[0] == field
    assert SECRET not in refused.text
    assert not Credential.objects.exists()


@pytest.mark.parametrize("path", ["credentials", "mcp-servers"])
def test_only_owners_with_the_permission_write(path):
    body = KEY if path == "credentials" else SERVER
    noun = "credential" if path == "credentials" else "mcpserver"
    viewer = Api(make_manager("viewer", f"view_{noun}"), scopes=ALL)
    assert viewer.post(path, body).status_code == 403
    owner = make_manager("owner", f"add_{noun}")
    made = Api(owner, scopes=ALL).post(path, {**body, "visibility": "everyone"})
    one = f"{path}/{made.json()['id']}"

    for user in (owner, make_manager("other"), make_user("plain")):
        api = Api(user, scopes=ALL)
        assert api.patch(one, {"name": "x"}).status_code == 403
        assert api.delete(one).status_code == 403
    writer = Api(owner, scopes=["read", "run", "approve", "admin"])
    assert writer.patch(one, {"name": "x"}).json()["code"] == "missing_scope"


def test_what_is_used_is_not_deleted(api, manager):
    key = Credential.objects.create(owner=manager, name="Key", sealed=seal(SECRET))
    server = McpServer.objects.create(owner=manager, name="Files", credential=key)
    tool = make_tool(manager, kind="mcp", mcp_server=server)

    assert api.delete(f"mcp-servers/{server.pk}").status_code == 409
    assert api.delete(f"credentials/{key.pk}").json()["code"] == "conflict"
    tool.delete()
    assert api.delete(f"mcp-servers/{server.pk}").status_code == 204
    assert api.delete(f"credentials/{key.pk}").status_code == 204
    assert AuditEntry.objects.filter(action="deleted", by="manager").count() == 2


def test_a_server_is_created_and_changed_without_being_asked(api, manager, running):
    key = Credential.objects.create(
        owner=manager, name="Key", hosts=["mcp.example.com"], sealed=seal(SECRET)
    )
    body = {**SERVER, "credential": key.slug, "client_id": "us"}
    made = api.post("mcp-servers", {**body, "client_secret": SECRET})
    one = f"mcp-servers/{made.json()['id']}"
    changed = api.patch(one, {"accepts_descriptions": True})

    server = McpServer.objects.get()
    assert (server.credential, server.accepts_descriptions) == (key, True)
    assert unseal(server.sealed_client_secret) == SECRET
    assert changed.json()["credential"] == key.slug
    assert changed.json()["has_client_secret"]
    assert SECRET not in made.text + changed.text + everything_stored()
    moved = api.patch(one, {"url": running.url})
    assert (moved.status_code, fields_of(moved)) == (422, ["credential"])
    gone = api.patch(one, {"url": running.url, "credential": None})
    assert gone.json()["url"] == running.url
    assert running.heads == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": ""}, "url"),
        ({"url": "ftp://a.example"}, "url"),
        ({"url": "https://a:b@a.example"}, "url"),
        ({"transport": "stdio"}, "command"),
        ({"transport": "stdio", "command": "rm -rf /"}, "command"),
        ({"transport": "sse"}, "transport"),
        ({"credential": "of-eve"}, "credential"),
        ({"command": 1}, "command"),
    ],
)
def test_a_refused_server_names_its_field(api, body, field, settings):
    settings.MCP_COMMANDS = command_line()
    Credential.objects.create(
        owner=make_user("eve"), name="of eve", slug="of-eve", hosts=["mcp.example.com"]
    )

    refused = api.post("mcp-servers", {**SERVER, **body})

    assert refused.status_code == 422, refused.text
    assert fields_of(refused)[0] == field
    assert not McpServer.objects.exists()


def test_a_server_is_tested_and_its_tools_are_imported_once(api, manager, running):
    made = api.post("mcp-servers", {"name": "Tests", "url": running.url}).json()
    path = f"mcp-servers/{made['id']}"

    tested = api.post(f"{path}/test").json()
    assert tested["ok"], tested
    [add] = [one for one in tested["tools"] if one["name"] == "add"]
    assert (add["tool"], add["is_changed"], add["flaw"]) == (None, False, "")
    wanted = {"name": "add", "digest": add["digest"]}
    other = {"name": "gone", "digest": "0" * 64}
    body = {"tools": [wanted, other]}
    first = api.post(f"{path}/import", body).json()
    again = api.post(f"{path}/import", body).json()

    tool = Tool.objects.get()
    assert [one["id"] for one in first["imported"]] == [tool.pk]
    assert (tool.enabled, tool.visibility, tool.owner) == (False, "private", manager)
    assert first["skipped"] == ["gone"]
    assert (again["imported"], again["skipped"]) == ([], ["add", "gone"])
    [add] = [t for t in api.post(f"{path}/test").json()["tools"] if t["name"] == "add"]
    assert add["tool"] == tool.pk


def test_a_server_that_does_not_answer_is_named(api, running):
    made = api.post("mcp-servers", {"name": "x", "url": f"{running.url}/nothing"})
    path = f"mcp-servers/{made.json()['id']}"

    tested = api.post(f"{path}/test").json()
    imported = api.post(
        f"{path}/import", {"tools": [{"name": "add", "digest": "0" * 64}]}
    )

    assert (tested["ok"], tested["tools"]) == (False, [])
    assert "404" in tested["message"]
    assert (imported.status_code, imported.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
def test_no_test_reaches_an_internal_address(api, settings, host):
    settings.PRIVATE_HOSTS = ""
    with serve(lambda got: Answer({})) as server:
        url = f"http://{host}:{server.url.rpartition(':')[2]}/mcp"
        made = api.post("mcp-servers", {"name": "x", "url": url})
        path = f"mcp-servers/{made.json()['id']}"
        tested = api.post(f"{path}/test").json()

        assert server.got == []
    assert not tested["ok"]


def test_the_secret_is_sent_and_in_no_answer(api, manager, settings):
    def echo(got):
        return Answer({"you sent": got.headers}, status=400)

    with serve(echo) as server:
        settings.PRIVATE_HOSTS = f"mcp={server.url.removeprefix('http://')}"
        key = api.post("credentials", {**KEY, "hosts": [server.url]}).json()
        made = api.post(
            "mcp-servers", {"name": "x", "url": server.url, "credential": key["slug"]}
        )
        tested = api.post(f"mcp-servers/{made.json()['id']}/test")

        assert SECRET in server.got[0].headers["authorization"]
    assert SECRET not in tested.text
    assert not tested.json()["ok"]


def test_a_user_who_only_uses_a_server_does_not_test_it(running):
    owner = make_manager("owner")
    made = Api(owner, scopes=ALL).post(
        "mcp-servers", {"name": "x", "url": running.url, "visibility": "everyone"}
    )
    path = f"mcp-servers/{made.json()['id']}"
    body = {"tools": [{"name": "add", "digest": "0" * 64}]}

    plain = Api(make_user("plain"), scopes=ALL)
    assert plain.post(f"{path}/test").status_code == 403
    assert plain.post(f"{path}/import", body).status_code == 403
    viewer = Api(make_manager("viewer", "view_mcpserver"), scopes=ALL)
    assert viewer.post(f"{path}/import", body).status_code == 403
    assert running.heads == []
    assert viewer.post(f"{path}/test").json()["ok"]


@pytest.mark.parametrize("path", ["credentials", "mcp-servers"])
def test_a_name_that_is_repeated_is_refused(api, path):
    raw = b'{"name": "x", "hosts": ["a.example"], "hosts": ["b.example"]}'

    assert api.post(path, raw).status_code == 400
