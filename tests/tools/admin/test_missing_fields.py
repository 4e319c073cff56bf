"""What the admin says where something is missing, and what it lets go."""

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from tests.mcp.rows import make_server
from tests.tools.admin.test_tools import page, signed_in
from tests.tools.rows import make_tool, make_user
from tools.admin.owned import Referrers
from tools.models import AuditEntry, Credential, Tool
from tools.secrets import seal

pytestmark = pytest.mark.django_db

CREDENTIALS = "/admin/tools/credential/"
SHOP = "shop=sqlite:////tmp/no-such-shop.db"


def credential(**fields):
    values = {"name": "orders", "owner": make_user(), "hosts": ["a.example"], **fields}
    return Credential.objects.create(**values)


def test_a_credential_without_a_secret_says_so_and_so_do_its_tools():
    empty = credential()
    tool = make_tool(kind="http", credential=empty)
    client = signed_in()

    assert "No secret is stored" in page(client, f"{CREDENTIALS}{empty.pk}/change/")
    for address in (
        "/tools/",
        "/admin/tools/tool/",
        f"/admin/tools/tool/{tool.pk}/change/",
        f"/tools/{tool.slug}/",
    ):
        assert "the credential “orders” has no secret" in page(client, address)


def test_a_credential_with_a_secret_warns_of_nothing():
    full = credential(sealed=seal("s3cret"))
    make_tool(kind="http", credential=full)
    client = signed_in()

    assert "No secret" not in page(client, f"{CREDENTIALS}{full.pk}/change/")
    assert "Every call fails" not in page(client, "/admin/tools/tool/")


def test_a_tool_whose_function_is_gone_says_so_and_others_do_not():
    make_tool(name="here")
    gone = make_tool(name="away", config={"function": "gone:away"})
    client = signed_in()

    said = "Every call fails: the function is no longer registered."
    assert page(client, "/admin/tools/tool/").count(said) == 1
    assert said in page(client, f"/admin/tools/tool/{gone.pk}/change/")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        pytest.param("", "Every call fails: no database is selected.", id="none"),
        pytest.param("old", "the database “old” is no longer listed.", id="gone"),
    ],
)
def test_a_query_without_a_database_warns(name, sentence, settings):
    settings.SQL_CONNECTIONS = SHOP
    tool = make_tool(kind="sql", config={"connection": name, "query": "SELECT 1"})
    client = signed_in()

    assert sentence in page(client, "/admin/tools/tool/")
    form = page(client, f"/admin/tools/tool/{tool.pk}/change/")
    assert sentence in form
    assert ">Select one</option>" in form


def test_a_query_with_a_database_warns_of_nothing(settings):
    settings.SQL_CONNECTIONS = SHOP
    make_tool(kind="sql", config={"connection": "shop", "query": "SELECT 1"})

    assert "Every call fails" not in page(signed_in(), "/admin/tools/tool/")


def test_a_credential_in_use_is_not_deleted_and_its_users_are_named():
    used = credential()
    tool = make_tool(name="orders_of", credential=used)
    server = make_server(name="Calendar", credential=used)
    address = f"{CREDENTIALS}{used.pk}/delete/"

    said = signed_in().post(address, {"post": "yes"}).content.decode()

    assert Credential.objects.exists()
    assert f'<a href="/admin/tools/tool/{tool.pk}/change/">orders_of</a>' in said
    assert f'<a href="/admin/tools/mcpserver/{server.pk}/change/">Calendar</a>' in said


def test_a_credential_that_is_attached_while_it_is_deleted_stays(monkeypatch):
    used = credential()
    make_tool(credential=used)
    unseen = Referrers(visible=[], hidden_count=0)  # what a page knew a moment before
    monkeypatch.setattr("tools.admin.owned.find_visible_referrers", lambda *_: unseen)
    address = f"{CREDENTIALS}{used.pk}/delete/"

    answer = signed_in().post(address, {"post": "yes"}, follow=True)

    assert answer.redirect_chain == [(f"{CREDENTIALS}{used.pk}/change/", 302)]
    assert "Not deleted: it is in use now." in answer.content.decode()
    assert Credential.objects.exists()


def test_a_credential_of_archived_tools_is_deleted_and_they_lose_it():
    used = credential()
    tool = make_tool(credential=used, archived_at=timezone.now())
    client = signed_in()

    assert "/delete/" in page(client, f"{CREDENTIALS}{used.pk}/change/")
    client.post(f"{CREDENTIALS}{used.pk}/delete/", {"post": "yes"})

    assert Tool.objects.get(pk=tool.pk).credential is None
    assert tool.revisions.first().note == "Its credential orders was deleted"
    assert AuditEntry.objects.filter(action="deleted", noun="credential").exists()


def test_users_somebody_may_not_see_are_counted():
    used = credential(owner=make_user("eve", is_staff=True, is_superuser=False))
    make_tool(name="private", credential=used)
    client = signed_in()
    eve = used.owner
    names = ("change_credential", "view_credential")
    eve.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(eve)

    said = page(client, f"{CREDENTIALS}{used.pk}/delete/")

    assert "1 more that you cannot see" in said
    assert "private" not in said


def test_a_tool_cannot_be_deleted():
    tool = make_tool()

    answer = signed_in().post(f"/admin/tools/tool/{tool.pk}/delete/", {"post": "yes"})

    assert answer.status_code == 403
    assert Tool.objects.exists()


def test_an_administrator_is_said_to_have_every_right():
    admin = make_user("admin", is_staff=True, is_superuser=True)

    shown = page(signed_in(), f"/admin/auth/user/{admin.pk}/change/")

    assert "Superusers have all permissions." in shown
