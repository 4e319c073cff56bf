"""Changing and trying tools through the API."""

import pytest
from django.contrib.auth.models import Group, Permission

from runs.models import ApiToken
from tests.api.make_client import Api, fields_of
from tests.make import make_tool, make_user
from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.http_server import Answer, serve
from tools.audit.masking import SECRET_MASK
from tools.models import AuditEntry, Credential, Tool, ToolTrial
from tools.secrets import seal

pytestmark = pytest.mark.django_db

ALL = tuple(ApiToken.Scope.values)
SECRET = "s3cret-of-the-key"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}
REQUEST = {"method": "GET", "url": "https://api.example.com/orders/{id}"}
CALCULATOR = {"function": "tools.builtin.calculator:calculator"}


def make_manager(name="manager"):
    user = make_user(name, is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools")
    )
    return user


@pytest.fixture
def manager():
    return make_manager()


@pytest.fixture
def api(manager):
    return Api(manager, scopes=ALL)


def make_http_tool(owner, **fields):
    given = {"kind": "http", "config": REQUEST, "args_schema": SCHEMA, **fields}
    return make_tool(owner, name="orders", **given)


def make_key(owner, host="api.example.com", **fields):
    return Credential.objects.create(
        owner=owner, name="Key", hosts=[host], sealed=seal(SECRET), **fields
    )


def test_a_change_is_a_revision_with_its_author(api, manager):
    tool = make_http_tool(manager)
    group = Group.objects.create(name="crew")
    manager.groups.add(group)
    config = {**REQUEST, "headers": {"Accept": "text/plain"}}

    changed = api.patch(
        f"tools/{tool.pk}",
        {
            "description": "Reads an order.",
            "config": config,
            "timeout": 5,
            "hosts": ["API.example.com"],
            "approval": "always",
            "approvers": "crew",
            "credential": make_key(manager).slug,
            "visibility": "groups",
            "groups": ["crew"],
            "note": "Slower server",
        },
    )

    assert changed.status_code == 200, changed.text
    tool.refresh_from_db()
    assert (tool.description, tool.config, tool.timeout) == (
        *("Reads an order.", config),
        5,
    )
    assert (tool.hosts, tool.approvers) == (["api.example.com"], group)
    assert (tool.credential.name, list(tool.groups.all())) == ("Key", [group])
    revision = tool.revisions.first()
    assert (revision.note, revision.by) == ("Slower server", manager)
    entry = AuditEntry.objects.filter(noun="tool", action="changed").first()
    assert (entry.by, entry.way) == ("manager", "api")


def test_what_is_left_out_stays_and_null_removes(api, manager):
    crew = Group.objects.create(name="crew")
    tool = make_http_tool(
        manager, credential=make_key(manager), approvers=crew, calls_per_run=3
    )

    api.patch(f"tools/{tool.pk}", {"description": "New."})
    tool.refresh_from_db()
    assert (tool.approvers, tool.calls_per_run) == (crew, 3)
    api.patch(f"tools/{tool.pk}", {"approvers": None, "credential": None})

    tool.refresh_from_db()
    assert (tool.approvers, tool.credential) == (None, None)
    assert tool.description == "New."


def test_a_change_of_an_older_state_is_refused(api, manager):
    tool = make_http_tool(manager)
    path = f"tools/{tool.pk}"
    etag = api.get(path).headers["ETag"]

    changed = api.patch(path, {"description": "First."}, If_Match=etag)
    refused = api.patch(path, {"description": "Second."}, If_Match=etag)

    assert (changed.status_code, refused.status_code) == (200, 412)
    assert changed.headers["ETag"] not in (None, etag)
    assert Tool.objects.get().description == "First."


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a\nb"}, "name"),
        ({"kind": "python"}, "kind"),
        ({"slug": "other"}, "slug"),
        ({"timeout": 0}, "timeout"),
        ({"effect": "none"}, "effect"),
        ({"approvers": "nobody"}, "approvers"),
        ({"credential": "nothing"}, "credential"),
        ({"hosts": ["https://a.example/path"]}, "hosts"),
        ({"args_schema": {"type": "nothing"}}, "args_schema"),
        ({"args_schema": {"type": "object", "properties": {}}}, "config"),
        ({"config": {"url": "https://a.example/{nothing}"}}, "config"),
        ({"config": {"url": "ftp://a.example"}}, "config"),
        ({"config": {"url": "http://169.254.169.254/latest"}}, "config"),
        ({"config": {"url": "https://a.example", "more": 1}}, "config"),
        ({"config": {**REQUEST, "credential": 1}}, "config.credential"),
        ({"config": {**REQUEST, "hosts": []}}, "config.hosts"),
        (
            {"config": {**REQUEST, "headers": {"X-Key": SECRET_MASK}}},
            "config.headers.X-Key",
        ),
        ({"visibility": "groups"}, "groups"),
        ({"groups": ["crew"]}, "groups"),
    ],
)
def test_a_refused_change_names_its_field_and_changes_nothing(
    api, manager, body, field
):
    tool = make_http_tool(manager)

    refused = api.patch(f"tools/{tool.pk}", {"description": "Half.", **body})

    assert refused.status_code == 422, refused.text
    assert fields_of(refused)[0] == field
    assert Tool.objects.get().description != "Half."
    assert not tool.revisions.exists()


def test_credentials_of_others_are_not_used(api, manager):
    tool = make_http_tool(manager)
    key = make_key(make_user("eve"))

    refused = api.patch(f"tools/{tool.pk}", {"credential": key.slug})
    tried = api.post(
        f"tools/{tool.pk}/try",
        {"arguments": {"id": 1}, "definition": {"credential": key.slug}},
    )

    assert fields_of(refused) == fields_of(tried) == ["credential"]
    key.visibility = "everyone"
    key.save()
    allowed = api.patch(f"tools/{tool.pk}", {"credential": key.slug})
    assert allowed.status_code == 200


def test_a_credential_of_another_host_is_refused(api, manager):
    tool = make_http_tool(manager)
    key = make_key(manager, host="other.example")

    refused = api.patch(f"tools/{tool.pk}", {"credential": key.slug})

    assert (refused.status_code, fields_of(refused)) == (422, ["credential"])
    assert "other.example" in refused.json()["detail"]


def test_a_function_that_keeps_no_hosts_gets_neither_hosts_nor_credential(api, manager):
    tool = make_tool(manager, config=CALCULATOR)
    key = make_key(manager)

    refused = api.patch(f"tools/{tool.pk}", {"hosts": ["a.example"]})
    keyless = api.patch(f"tools/{tool.pk}", {"credential": key.slug})

    assert (fields_of(refused), fields_of(keyless)) == (["hosts"], ["credential"])


def test_what_a_server_says_of_its_tool_is_not_changed(api, manager):
    tool = make_tool(manager, kind="mcp", config={"tool": "add"})

    refused = api.patch(f"tools/{tool.pk}", {"config": {"tool": "delete"}})

    assert (refused.status_code, fields_of(refused)) == (422, ["config"])
    renamed = api.patch(f"tools/{tool.pk}", {"description": "Adds."})
    assert renamed.status_code == 200


def test_a_broken_tool_can_be_disabled(api, manager):
    tool = make_tool(manager, config={"function": "gone:gone"})

    answer = api.patch(f"tools/{tool.pk}", {"enabled": False})

    assert (answer.status_code, answer.json()["enabled"]) == (200, False)
    assert tool.revisions.get().note == "Disabled"


def test_a_tool_is_called_once_with_its_arguments(api, manager):
    tool = make_tool(manager, config=CALCULATOR)

    done = api.post(f"tools/{tool.pk}/try", {"arguments": {"expression": "40 + 2"}})

    assert done.status_code == 200, done.text
    said = done.json()
    assert (said["ok"], said["result"], said["is_unsaved"]) == (True, "42", False)
    entry = AuditEntry.objects.get(action="tried")
    assert (entry.by, entry.way) == ("manager", "api")
    trial = ToolTrial.objects.get()
    assert (trial.by, trial.is_ok) == (manager, True)
    failed = api.post(f"tools/{tool.pk}/try", {"arguments": {"expression": "1 / 0"}})
    assert failed.json()["error"] != ""
    assert not failed.json()["ok"]


def test_typed_values_are_called_and_not_saved(api, manager, settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1"
    tool = make_http_tool(manager, effect="read")
    with serve(lambda got: Answer({"path": got.path})) as server:
        body = {"config": {"url": f"{server.url}/orders/{{id}}"}}
        done = api.post(
            f"tools/{tool.pk}/try", {"arguments": {"id": 7}, "definition": body}
        ).json()

    assert (done["ok"], done["is_unsaved"]) == (True, True)
    assert (done["http_status"], done["result"]) == (200, '{"path":"/orders/7"}')
    tool.refresh_from_db()
    assert tool.config == REQUEST
    assert not tool.revisions.exists()
    assert "unsaved definition" in AuditEntry.objects.get(action="tried").changes


def test_a_tool_is_tried_before_it_is_created(api, manager):
    body = {"definition": {"kind": "function", "config": CALCULATOR}}

    done = api.post("tools/try", {**body, "arguments": {"expression": "6 * 7"}}).json()

    assert (done["ok"], done["result"]) == (True, "42")
    assert not Tool.objects.exists()
    mcp = {"definition": {"kind": "mcp", "config": {"tool": "add", "mcp_server": 1}}}
    assert fields_of(api.post("tools/try", mcp)) == ["definition.kind"]


def test_side_effects_are_confirmed(api, manager, settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1"
    with serve(lambda got: Answer({})) as server:
        config = {"method": "POST", "url": f"{server.url}/pay"}
        tool = make_http_tool(manager, effect="side_effect", config=config)
        path = f"tools/{tool.pk}/try"

        refused = api.post(path, {"arguments": {"id": 1}})
        shown = api.post(path, {"arguments": {"id": 1}, "preview": True})
        assert server.got == []
        done = api.post(path, {"arguments": {"id": 1}, "confirm": True})

        assert len(server.got) == 1
    assert (refused.status_code, fields_of(refused)) == (422, ["confirm"])
    assert shown.json()["request"].startswith("POST http://127.0.0.1")
    assert not shown.json()["is_called"]
    assert done.json()["ok"]
    assert AuditEntry.objects.filter(action="tried").count() == 1


def test_the_secret_of_a_credential_is_in_no_answer_and_no_entry(
    api, manager, settings
):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1"
    with serve(lambda got: Answer({"you sent": got.headers})) as server:
        key = make_key(manager, host=server.url)
        tool = make_http_tool(
            manager, effect="read", config={"url": f"{server.url}/"}, credential=key
        )
        done = api.post(f"tools/{tool.pk}/try", {"arguments": {"id": 1}})

        assert SECRET in server.got[0].headers["authorization"]
    assert done.json()["ok"]
    assert SECRET not in done.text
    assert SECRET not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706433:{port}/",
        "http://localhost:{port}/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_no_trial_reaches_an_internal_address(api, manager, settings, url):
    settings.PRIVATE_HOSTS = ""
    with serve(lambda got: Answer({})) as server:
        port = server.url.rpartition(":")[2]
        body = {"kind": "http", "config": {"url": url.format(port=port)}}
        answer = api.post(
            "tools/try", {"definition": {**body, "effect": "read"}, "arguments": "x"}
        )

        assert server.got == []
    assert answer.status_code == 422 or not answer.json()["ok"]


def test_a_redirect_to_an_internal_address_is_not_followed(api, manager, settings):
    with serve(lambda got: Answer({"inside": True})) as inside:
        outside = serve(
            lambda got: Answer({}, status=302, headers={"location": inside.url})
        )
        with outside as server:
            settings.PRIVATE_HOSTS = f"tool={server.url.removeprefix('http://')}"
            body = {"kind": "http", "effect": "read", "config": {"url": server.url}}
            answer = api.post("tools/try", {"definition": body, "arguments": "x"})

            assert len(server.got) == 1
        assert inside.got == []
    assert not answer.json()["ok"]


def test_viewers_try_what_is_stored_and_nothing_else():
    owner = make_manager("owner")
    tool = make_tool(owner, config=CALCULATOR, visibility="everyone")
    viewer = make_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_tool"))
    api, arguments = Api(viewer, scopes=ALL), {"expression": "1"}
    path = f"tools/{tool.pk}/try"

    assert api.post(path, {"arguments": arguments}).json()["ok"]
    typed = {"arguments": arguments, "definition": {"config": CALCULATOR}}
    assert api.post(path, typed).status_code == 403
    plain = Api(make_user("plain"), scopes=ALL)
    assert plain.post(path, {"arguments": arguments}).status_code == 403
    assert plain.post("tools/try", {"definition": {"kind": "http"}}).status_code == 403
    Tool.objects.update(approval="always")
    refused = api.post(path, {"arguments": arguments})
    assert (refused.status_code, ToolTrial.objects.count()) == (422, 1)
    assert "requires an approval" in refused.json()["detail"]
    Tool.objects.update(approval="never", enabled=False)
    assert api.post(path, {"arguments": arguments}).status_code == 422


@pytest.mark.parametrize(
    "arguments", [{}, {"expression": 1}, "text", {"expression": "1", "more": 2}, [1]]
)
def test_wrong_arguments_make_no_call(api, manager, arguments):
    tool = make_tool(manager, config=CALCULATOR)

    refused = api.post(f"tools/{tool.pk}/try", {"arguments": arguments})

    assert (refused.status_code, fields_of(refused)) == (422, ["arguments"])
    assert not AuditEntry.objects.filter(action="tried").exists()


def test_a_tool_without_schema_takes_a_text(api, manager):
    config = {"code": "input.upper()"}
    body = {"definition": {"kind": "python", "config": config, "effect": "read"}}

    refused = api.post("tools/try", {**body, "arguments": {"input": "a"}})
    done = api.post("tools/try", {**body, "arguments": "a"})

    assert (refused.status_code, fields_of(refused)) == (422, ["arguments"])
    assert done.json()["result"] == "A"


def test_a_large_result_is_cut(api, manager):
    config = {"code": "'a' * 100_001"}
    body = {"definition": {"kind": "python", "config": config, "effect": "read"}}

    done = api.post("tools/try", {**body, "arguments": ""}).json()

    assert (len(done["result"]), done["is_cut"]) == (100_000, True)


def test_trials_need_the_scope_to_build(manager):
    tool = make_tool(manager, config=CALCULATOR)
    api = Api(manager, scopes=["read", "run", "approve", "admin"])

    assert api.post(f"tools/{tool.pk}/try", {}).json()["code"] == "missing_scope"
    assert api.post("tools/try", {}).json()["code"] == "missing_scope"
    assert api.patch(f"tools/{tool.pk}", {}).json()["code"] == "missing_scope"


def test_a_name_that_is_repeated_is_refused(api, manager):
    tool = make_http_tool(manager)
    raw = b'{"config": {"url": "https://a.example", "url": "http://127.0.0.1"}}'

    for method, path in (("PATCH", f"tools/{tool.pk}"), ("POST", "tools/try")):
        assert api.send(method, path, raw).status_code == 400
