"""Changing several rows of the administration at once."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from tests.tools.rows import make_user
from tools.audit.entry import AuditEntry
from tools.models import Credential, McpServer

pytestmark = pytest.mark.django_db


def make_credential(owner, **fields):
    return Credential.objects.create(owner=owner, kind="bearer", **fields)


def signed_in(*rights, **fields):
    user = make_user("admin", is_staff=True, **fields)
    for codename in rights:
        user.user_permissions.add(Permission.objects.get(codename=codename))
    client = Client()
    client.force_login(user)
    return client, user


def choose(client, model, action, *rows):
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    return client.post(f"/admin/{model}/", data, follow=True).text


def test_credentials_and_servers_are_shared_together():
    client, user = signed_in(is_superuser=True)
    credentials = [make_credential(user, name=name) for name in ("first", "second")]
    server = McpServer.objects.create(owner=user, name="files", url="https://a.example")

    said = choose(client, "tools/credential", "share", *credentials)
    choose(client, "tools/mcpserver", "share", server)

    assert "Changed 2 rows." in said
    for row in (*credentials, server):
        row.refresh_from_db()
        assert row.visibility == "everyone"
    assert AuditEntry.objects.filter(action="changed", noun="credential").count() == 2
    choose(client, "tools/credential", "unshare", credentials[0])
    credentials[0].refresh_from_db()
    assert credentials[0].visibility == "private"


def test_credentials_of_others_are_not_shared():
    client, user = signed_in("view_credential", "change_credential")
    mine = make_credential(user, name="mine")
    other = make_credential(make_user("bob"), name="other", visibility="everyone")

    said = choose(client, "tools/credential", "unshare", mine, other)

    assert "1 row was not changed: you are not its owner." in said
    other.refresh_from_db()
    assert other.visibility == "everyone"


def test_users_are_refused_and_allowed_to_sign_in_but_not_oneself():
    client, user = signed_in(is_superuser=True)
    bob, eve = make_user("bob"), make_user("eve")

    said = choose(client, "auth/user", "refuse_sign_in", user, bob, eve)

    assert "Changed 2 users." in said
    assert "1 user was not changed" in said
    for one in (user, bob, eve):
        one.refresh_from_db()
    assert [user.is_active, bob.is_active, eve.is_active] == [True, False, False]
    choose(client, "auth/user", "allow_sign_in", bob)
    bob.refresh_from_db()
    assert bob.is_active


def test_who_manages_users_cannot_change_administrators_together():
    client, _user = signed_in("view_user", "change_user")
    boss, bob = make_user("boss", is_superuser=True), make_user("bob")

    said = choose(client, "auth/user", "refuse_sign_in", boss, bob)

    assert "1 user was not changed" in said
    boss.refresh_from_db()
    assert boss.is_active


def test_groups_are_deleted_together_after_a_question():
    client, _ = signed_in(is_superuser=True)
    groups = [Group.objects.create(name=name) for name in ("sales", "support")]

    asked = choose(client, "auth/group", "delete_selected", *groups)

    assert "Delete 2 groups?" in asked
    assert "sales, support" in asked
    assert Group.objects.count() == 2
    data = {
        "action": "delete_selected",
        "_selected_action": [group.pk for group in groups],
        "post": "yes",
    }
    client.post("/admin/auth/group/", data)
    assert not Group.objects.exists()
    assert AuditEntry.objects.filter(action="deleted", noun="group").count() == 2


def test_a_group_with_more_permissions_stays():
    client, _ = signed_in("view_group", "change_group", "delete_group")
    group = Group.objects.create(name="operators")
    group.permissions.add(Permission.objects.get(codename="delete_user"))

    asked = choose(client, "auth/group", "delete_selected", group)

    assert "Cannot be deleted" in asked
    assert 'name="post"' not in asked
    data = {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"}
    assert client.post("/admin/auth/group/", data).status_code == 403
    assert Group.objects.exists()


def test_users_who_own_something_are_not_deleted_together():
    client, _ = signed_in(is_superuser=True)
    bob, eve = make_user("bob"), make_user("eve")
    make_credential(bob, name="his")

    asked = choose(client, "auth/user", "delete_selected", bob, eve)

    assert "Some of these users own runs, agents or tools" in asked
    assert 'name="post"' not in asked
    data = {"_selected_action": [bob.pk, eve.pk], "post": "yes"}
    client.post("/admin/auth/user/", {"action": "delete_selected", **data})
    assert User.objects.filter(pk__in=[bob.pk, eve.pk]).count() == 2
