"""Tools as files: taking them along, and importing drafts."""

import json
import re
import socket

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from runs.services.agentfile.text import parse_agentfile
from tests.fakes.outbreak import outbreaks
from tests.make import make_agent, make_tool, make_user, make_version
from tools.audit.entry import AuditEntry
from tools.models import Credential, Tool

pytestmark = pytest.mark.django_db

EXPORT, IMPORT = "/tool-files/export/", "/tool-files/import/"
HTTP = {
    "method": "GET",
    "url": "https://a.example/u/{id}",
    "headers": {"Authorization": "Bearer s3cret", "Accept": "text/plain"},
}
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
FILE = {
    "agentfile": 1,
    "tools": [
        {
            "slug": "get-user",
            "name": "get_user",
            "kind": "http",
            "visibility": "everyone",
            "args_schema": SCHEMA,
            "config": {"method": "GET", "url": "https://a.example/u/{id}"},
            "credential": "shop-key",
        },
        {"slug": "theirs", "config": {"function": "their_tools:add"}},
    ],
}


def sentence(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


@pytest.mark.parametrize(
    ("rights", "trail"),
    [
        ({"is_staff": True, "is_superuser": True}, ["Administration", "Tools"]),
        ({}, ["Tools"]),
    ],
)
def test_the_import_stands_where_its_other_pages_do(rights, trail):
    client = Client()
    client.force_login(make_user("bob", **rights))

    shown = client.get(IMPORT).content.decode()

    crumbs = shown.partition('class="crumbs"')[2].partition("</nav>")[0]
    assert re.findall(r"<a [^>]*>([^<]+)</a>", crumbs) == trail


def test_a_tool_is_exported_without_what_looks_like_a_secret(client, ann):
    key = Credential.objects.create(name="key", owner=ann, hosts=["a.example"])
    tool = make_tool(
        ann, name="get_user", kind="http", config=HTTP, args_schema=SCHEMA,
        credential=key,
    )  # fmt: skip

    answer = client.get(EXPORT, {"slug": tool.slug})

    (entry,) = yaml.safe_load(answer.content)["tools"]
    assert "attachment" in answer["Content-Disposition"]
    assert entry["credential"] == "key"
    assert entry["config"]["headers"] == {
        "Authorization": "[secret]",
        "Accept": "text/plain",
    }
    entry = AuditEntry.objects.get(action="exported")
    assert (entry.by, entry.thing) == ("ann", "get_user")


def test_only_ones_own_tools_are_exported(client, ann):
    mine, other = make_tool(ann), make_tool(visibility="everyone")

    answer = client.get(EXPORT, {"slug": [mine.slug, other.slug]})

    assert [one["slug"] for one in yaml.safe_load(answer.content)["tools"]] == [
        mine.slug
    ]
    assert client.get(EXPORT, {"slug": other.slug}).status_code == 404
    assert client.get(EXPORT).status_code == 404
    assert Client().get(EXPORT, {"slug": mine.slug}).status_code == 302


def test_the_admins_list_exports_what_is_marked(client):
    client.force_login(make_user("boss", is_superuser=True))
    tool = make_tool(name="one")

    answer = client.post(
        "/admin/tools/tool/", {"action": "export", "_selected_action": [tool.pk]}
    )

    assert answer.headers["Location"] == f"{EXPORT}?slug={tool.slug}"


def test_the_page_says_what_happens(client, ann):
    assert "private and disabled" in client.get(IMPORT).content.decode()


def test_imported_tools_are_drafts_and_what_they_lack_is_named(client, ann):
    Credential.objects.create(name="shop-key", owner=ann, hosts=["a.example"])

    answer = client.post(IMPORT, {"text": json.dumps(FILE)}, follow=True)

    http, theirs = Tool.objects.order_by("pk")
    assert [tool.enabled for tool in (http, theirs)] == [False, False]
    assert (http.credential, http.visibility, http.owner) == (None, "private", ann)
    assert (http.effect, http.approval) == ("side_effect", "side_effects")
    assert "get-user needs the credential 'shop-key'" in sentence(answer)
    assert "theirs needs the function 'their_tools:add'" in sentence(answer)


def test_importing_again_says_what_is_still_missing(client, ann):
    client.post(IMPORT, {"text": json.dumps(FILE)}, follow=True)
    key = Credential.objects.create(name="k", owner=ann, hosts=["a.example"])
    Tool.objects.filter(slug="get-user").update(credential=key, visibility="everyone")

    answer = client.post(IMPORT, {"text": json.dumps(FILE)}, follow=True)

    assert Tool.objects.get(slug="get-user").credential == key
    assert "Nothing changed" in sentence(answer)
    assert "'shop-key'" not in sentence(answer)
    assert "'their_tools:add'" in sentence(answer)


def test_an_exported_file_can_be_imported_by_another(client, ann):
    tool = make_tool(ann, name="get_user", kind="http", config=HTTP, args_schema=SCHEMA)
    text = client.get(EXPORT, {"slug": tool.slug}).content
    Tool.objects.all().delete()
    client.force_login(make_user("bob"))

    client.post(IMPORT, {"file": SimpleUploadedFile("t.yaml", text)})

    assert Tool.objects.get().config["url"] == HTTP["url"]
    assert not Tool.objects.get().enabled


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agentfile: 2", "agentfile"),
        ("{", "Nothing was imported"),
        ("agentfile: 1\ntools: [{slug: a, kind: shell}]", "Unknown kind"),
        ("agentfile: 1\ntools: [{slug: a, code: x}]", "code"),
        (
            "agentfile: 1\ntools: [{slug: a, kind: http, config: {url: 'file:///x'}}]",
            "begins with https://",
        ),
        (
            "agentfile: 1\ntools: [{slug: a, kind: http,"
            " config: {url: 'http://169.254.169.254/'}}]",
            "hand out credentials",
        ),
    ],
)
def test_a_mistake_is_a_sentence_and_nothing_is_stored(client, ann, text, says):
    answer = client.post(IMPORT, {"text": text})

    assert says in answer.content.decode()
    assert not Tool.objects.exists()


WORDS = st.sampled_from(
    [
        *("agentfile", "providers", "prompts", "tools", "agents", "slug", "name", "x"),
        *("kind", "http", "function", "python", "sql", "mcp", "tool-calling", "react"),
        *("config", "function", "url", "https://a.example/{id}", "file:///etc/passwd"),
        *("http://169.254.169.254/", "code", "import os; os.system('true')", "method"),
        *("args_schema", "type", "object", "properties", "pattern", "(a+)+$", "$ref"),
        *("credential", "mcp_server", "overrides", "policy", "allow", "visibility"),
        *("everyone", "approval", "never", "effect", "read", "template", "{input}"),
        *("provider", "model", "executor", "max_iterations", "tool", "agent", "POST"),
        *("os:system", "builtins:eval", "tools.builtin.calculator:calculator", "{0.a}"),
        *("connection", "query", "DROP TABLE x", "key_env", "SECRET_KEY", "command"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | WORDS
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4)
    ),
    max_leaves=12,
)


def mostly(*good):
    """Return one of `good`, or now and then something else."""
    right = st.sampled_from(good)
    return st.integers(0, 19).flatmap(lambda n: right if n else VALUES)


CONFIGS = [
    ("function", {"function": "tools.builtin.calculator:calculator"}),
    ("function", {"function": "os:system"}),
    ("http", {"url": "https://a.example/{id}"}),
    ("http", {"url": "http://169.254.169.254/", "method": "POST"}),
    ("http", {"url": "https://a.example/", "headers": {"Host": "b"}}),
    ("python", {"code": "__import__('os').system('true')"}),
    ("python", {"code": "1 +"}),
    ("sql", {"connection": "default", "query": "DROP TABLE x"}),
    ("mcp", {"tool": "x"}),
    ("shell", {"command": "true"}),
]
SCHEMAS = (
    None,
    {"type": "object", "properties": {"id": {"type": "string"}}},
    {"type": "object", "properties": {"id": {"pattern": "(a+)+$"}}},
    {"$ref": "http://a.example/schema"},
)


@st.composite
def tools(draw):
    """A tool as a file may name it, right in most of its fields."""
    kind, config = draw(st.sampled_from(CONFIGS + CONFIGS[:3] * 4))
    more = st.fixed_dictionaries(
        {},
        optional={
            "name": mostly("f", "g"),
            "args_schema": mostly(*SCHEMAS),
            "effect": mostly("read", "side_effect"),
            "approval": mostly("never", "always"),
            "visibility": mostly("everyone", "groups"),
            "credential": mostly("shop-key", "no-key"),
            "mcp_server": mostly("no-server"),
            "timeout": mostly(1, 3600),
            "hosts": mostly([], ["a.example"]),
        },
    )
    slug = draw(st.sampled_from(["a", "b", "c", "d", "e", "f"]))
    return {"slug": slug, "kind": kind, "config": config, **draw(more)}


AGENTS = st.fixed_dictionaries(
    {"slug": st.just("z"), "provider": st.just("p"), "model": st.just("m")},
    optional={
        "kind": mostly("tool-calling", "react"),
        "tools": st.lists(
            st.just("a")
            | st.fixed_dictionaries({"tool": st.just("a"), "overrides": VALUES}),
            max_size=1,
        ),
        "executor": mostly({}, {"max_iterations": 3}),
        "parameters": mostly({}),
    },
)
FILES = st.fixed_dictionaries(
    {"agentfile": st.just(1), "tools": st.lists(tools(), min_size=1, max_size=2)},
    optional={
        "agents": st.lists(AGENTS, max_size=1),
        "providers": st.just([{"slug": "p", "base_url": "https://a.example/v1"}]),
        "prompts": mostly([]),
    },
)
TEXTS = st.integers(0, 9).flatmap(
    lambda n: FILES.map(json.dumps) if n else VALUES.map(json.dumps) | st.text()
)


@settings(
    max_examples=80,
    derandomize=True,  # a find is mended, not met by chance
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=TEXTS)
@pytest.mark.slow
def test_no_file_breaks_out(client, ann, text):
    Credential.objects.get_or_create(slug="shop-key", owner=ann, name="k")
    with transaction.atomic():
        with outbreaks() as seen:
            answers = [
                client.post(address, {"text": text})
                for address in (IMPORT, "/agents/import/")
            ]
        event(f"made {Tool.objects.count()} tools")
        assert {answer.status_code for answer in answers} <= {200, 302}
        assert seen == []
        assert not Tool.objects.filter(enabled=True).exists()
        assert not Tool.objects.exclude(visibility="private").exists()
        assert not Tool.objects.exclude(credential=None).exists()
        transaction.set_rollback(True)


def test_a_planted_outbreak_is_noticed():
    with outbreaks() as seen, socket.socket() as probe:
        probe.settimeout(1)
        probe.connect_ex(("127.0.0.1", 1))

    assert len(seen) == 1


def test_versions_and_the_draft_are_exported_by_who_may_edit(client, ann):
    agent = make_agent(ann, name="Desk", slug="desk")
    make_version(agent, by=ann)
    url = f"/agents/{agent.pk}/export/"
    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()
    assert f'href="{url}?version=1"' in page

    kept, draft = client.get(f"{url}?version=1"), client.get(url)
    assert kept.headers["Content-Disposition"] == 'attachment; filename="desk-v1.yaml"'
    assert parse_agentfile(kept.content.decode()).agents[0].version == 1
    assert parse_agentfile(draft.content.decode()).agents[0].draft
    assert client.get(f"{url}?version=9").status_code == 404

    client.force_login(make_user("bob"))
    assert client.get(url).status_code == 404
