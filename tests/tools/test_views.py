"""The pages of tools for everybody."""

import pytest
from django.test import Client

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.rows import make_tool, make_user

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


def test_the_page_leads_those_who_may_edit_to_the_admin():
    tool = make_tool(slug="plus")

    _, page = shown_to(
        make_user("root", is_staff=True, is_superuser=True), "/tools/plus/"
    )

    assert f"/admin/tools/tool/{tool.pk}/change/" in page
    assert f"/admin/tools/tool/{tool.pk}/try/" in page


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
