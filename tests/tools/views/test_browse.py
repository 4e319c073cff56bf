"""The pages of tools for everybody."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import AgentTool
from tests.make import make_agent
from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.rows import make_tool, make_user
from tools.models import Credential, ToolUsage

pytestmark = pytest.mark.django_db

WEB_PAGE = {"function": "tools.builtin.web_page:web_page"}


def shown_to(user, address):
    client = Client()
    client.force_login(user)
    response = client.get(address)
    return response.status_code, response.content.decode()


def test_the_list_shows_what_is_shared():
    make_tool(name="shared", visibility="everyone")
    make_tool(name="hidden")

    code, page = shown_to(make_user("bob"), "/tools/")

    assert code == 200
    assert "shared" in page
    assert "/tools/hidden/" not in page


def test_the_list_can_be_searched():
    make_tool(name="weather", visibility="everyone")
    make_tool(name="clock", visibility="everyone")

    _, page = shown_to(make_user("bob"), "/tools/?q=weath")

    assert "/tools/weather/" in page
    assert "/tools/clock/" not in page
    assert " 1 tool\n" in page


def test_the_page_of_a_tool_says_what_it_takes_and_who_may():
    make_tool(name="plus", slug="plus", description="Adds.", visibility="everyone")

    code, page = shown_to(make_user("bob"), "/tools/plus/")

    assert code == 200
    assert "Adds." in page
    assert "integer" in page
    assert "Everyone" in page
    assert "/admin/" not in page


def test_a_stranger_gets_404():
    make_tool(slug="plus")

    assert shown_to(make_user("eve"), "/tools/plus/")[0] == 404


def test_without_tools_the_list_says_what_to_do():
    assert "No tools yet" in shown_to(make_user("bob"), "/tools/")[1]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({}, "Any that the function uses"),
        (
            {"hosts": ["a.example"]},
            "calls are refused: the function cannot be restricted",
        ),
        ({"config": WEB_PAGE}, "All public hosts"),
        ({"config": WEB_PAGE, "hosts": ["a.example"]}, "<dd>a.example</dd>"),
        ({"kind": "python", "config": {"code": "1"}}, "<dt>Hosts</dt><dd>None</dd>"),
    ],
)
def test_the_page_says_which_hosts_a_call_may_reach(tool, said):
    row = make_tool(**tool)

    assert said in shown_to(row.owner, f"/tools/{row.slug}/")[1]


def test_the_page_of_a_tool_calls_its_owner_by_name():
    wei = make_user("lin", first_name="Lin", last_name="Wei")
    make_tool(owner=wei, slug="plus")

    _, page = shown_to(wei, "/tools/plus/")

    assert "Only the owner, Lin Wei" in page


ALL_NAMES = {"flaky", "steady", "idle", "old", "shop"}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"flaky", "steady", "idle", "shop"}),
        ("kind=http", {"shop"}),
        ("usage=used", {"steady"}),
        ("usage=unused", {"flaky", "idle", "shop"}),
        ("usage=failing", {"flaky"}),
        ("usage=agentless", {"flaky", "idle", "shop"}),
        ("state=disabled", {"idle"}),
        ("state=archived", {"old"}),
        ("sharing=everyone", {"shop"}),
        ("credential=none", {"flaky", "steady", "idle"}),
        ("credential={credential}", {"shop"}),
        ("owner={owner}", {"shop"}),
        ("q=FLAK", {"flaky"}),
        ("q=%00&kind=x&owner=y&usage=z", {"flaky", "steady", "idle", "shop"}),
    ],
)
def test_the_list_can_be_filtered(query, names):
    bob = make_user("bob")
    key = Credential.objects.create(name="key", owner=bob)
    flaky = make_tool(name="flaky")
    hour = timezone.now() - timedelta(days=1)
    ToolUsage.objects.create(tool=flaky, hour=hour, calls=10, failures=5)
    steady = make_tool(name="steady", last_used_at=timezone.now())
    AgentTool.objects.create(agent=make_agent(owner=bob), tool=steady)
    make_tool(name="idle", enabled=False)
    make_tool(name="old", archived_at=timezone.now())
    more = {"kind": "http", "config": {}, "credential": key}
    make_tool(name="shop", owner=bob, visibility="everyone", **more)
    admin = make_user("root", is_staff=True, is_superuser=True)

    query = query.format(credential=key.pk, owner=bob.pk)
    _, page = shown_to(admin, f"/tools/?{query}")

    assert {name for name in ALL_NAMES if f"/tools/{name}/" in page} == names


@pytest.mark.parametrize(
    ("sort", "first"),
    [("name", "busy"), ("calls", "busy"), ("last", "idle"), ("failed", "flaky")],
)
def test_the_list_can_be_sorted(sort, first):
    busy = make_tool(name="busy")
    make_tool(name="idle", last_used_at=timezone.now())
    ToolUsage.objects.create(tool=busy, hour=timezone.now(), calls=3, failures=0)
    flaky = make_tool(name="flaky")
    ToolUsage.objects.create(tool=flaky, hour=timezone.now(), calls=2, failures=1)

    _, page = shown_to(make_user(), f"/tools/?sort={sort}")

    assert re.search(r'href="/tools/([a-z]+)/"', page)[1] == first


def test_the_list_of_many_tools_takes_few_queries(django_assert_max_num_queries):
    owner = make_user("root", is_staff=True, is_superuser=True)
    for number in range(60):
        make_tool(name=f"tool {number}", owner=owner)
    client = Client()
    client.force_login(owner)
    client.get("/tools/")

    with django_assert_max_num_queries(20):
        client.get("/tools/")


def test_only_editors_may_select_tools():
    make_tool(name="shared", visibility="everyone")

    _, page = shown_to(make_user("bob"), "/tools/")

    assert 'type="checkbox"' not in page
    assert 'class="bulk"' not in page
