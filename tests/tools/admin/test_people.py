"""People and groups in the admin."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from tests.tools.rows import make_tool, make_user
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db

LIST = "/admin/auth/user/"


def signed_in():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def page(client, address):
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def right(codename):
    return Permission.objects.get(codename=codename)


def test_rights_are_sentences_and_groups_are_boxes():
    Group.objects.create(name="Support")
    bob = make_user("bob")

    shown = page(signed_in(), f"{LIST}{bob.pk}/change/")

    assert "Change users" in shown
    assert 'type="checkbox" name="groups"' in shown
    for jargon in (
        "Superuser status",
        "Staff status",
        "Hold down",
        "Can add",
        "log entry",
    ):
        assert jargon not in shown


def test_a_person_is_changed_and_keeps_a_right_that_has_no_sentence():
    bob = make_user("bob")
    bob.user_permissions.add(right("view_session"), right("add_tool"))
    client = signed_in()
    ticks = [right("view_session").pk, right("view_tool").pk]

    assert "view_session" not in page(client, f"{LIST}{make_user('eve').pk}/change/")
    client.post(
        f"{LIST}{bob.pk}/change/",
        {"username": "bob", "is_active": "on", "user_permissions": ticks},
    )

    claim = set(bob.user_permissions.values_list("codename", flat=True))
    assert claim == {"view_session", "view_tool"}


def test_a_new_person_signs_in_with_the_password_they_were_given():
    secret = "a-long-enough-one"

    signed_in().post(
        f"{LIST}add/", {"username": "new", "password1": secret, "password2": secret}
    )

    assert Client().login(username="new", password=secret)


def test_a_password_is_set_and_never_shown():
    bob, client = make_user("bob"), signed_in()
    address, secret = f"{LIST}{bob.pk}/password/", "another-long-one"

    shown = page(client, address)
    assert "New password" in shown
    assert "At least 8 characters" in shown
    assert "Your password" not in shown + page(client, f"{LIST}add/")
    client.post(address, {"password1": secret, "password2": secret})

    assert Client().login(username="bob", password=secret)
    shown = page(client, f"{LIST}{bob.pk}/change/")
    assert User.objects.get(pk=bob.pk).password not in shown
    assert "pbkdf2" not in shown


def test_who_owns_something_is_not_deleted_and_the_page_says_what_to_do():
    bob = make_user("bob")
    make_tool(owner=bob)

    shown = page(signed_in(), f"{LIST}{bob.pk}/delete/")

    assert "This user cannot be deleted" in shown
    assert "Can sign in" in shown


def test_deleting_says_what_goes_with_it():
    bob, client = make_user("bob"), signed_in()

    shown = page(client, f"{LIST}{bob.pk}/delete/")
    assert "Delete bob" in shown
    assert "Nothing else is deleted." in shown
    client.post(f"{LIST}{bob.pk}/delete/", {"post": "yes"})

    assert not User.objects.filter(pk=bob.pk).exists()


def test_the_list_says_what_each_may_do():
    make_user("plain")
    make_user("helper", is_staff=True)
    make_user("gone", is_active=False)

    shown = page(signed_in(), LIST)

    for words in ("User", "Administration", "Cannot sign in"):
        assert f'<td class="field-role">{words}</td>' in shown


def test_a_group_names_its_members_and_rights():
    team = Group.objects.create(name="Support")
    make_user("bob").groups.add(team)
    client = signed_in()

    assert "bob" in page(client, "/admin/auth/group/")
    client.post(
        f"/admin/auth/group/{team.pk}/change/",
        {"name": "Support", "permissions": [right("add_tool").pk]},
    )

    assert list(team.permissions.all()) == [right("add_tool")]


def test_lists_say_what_nobody_filled_in():
    Group.objects.create(name="Bookkeeping")
    client = signed_in()

    groups = client.get("/admin/auth/group/").content.decode()
    people = client.get("/admin/auth/user/").content.decode()

    assert (
        '<td class="field-members"><span class="quiet">no members</span></td>' in groups
    )
    assert '<td class="field-email"><span class="quiet">none</span></td>' in people


def test_what_became_of_a_person_is_in_the_audit_log():
    bob = make_user("bob")

    answer = signed_in().get(f"{LIST}{bob.pk}/history/")

    assert answer.status_code == 302
    assert answer.url == f"/admin/tools/auditentry/?noun=user&thing_number={bob.pk}"


def test_without_the_audit_log_the_changes_of_the_pages_are_shown():
    bob, staff = make_user("bob"), make_user("staff", is_staff=True)
    staff.user_permissions.add(right("view_user"))
    client = Client()
    client.force_login(staff)

    assert "No changes yet" in page(client, f"{LIST}{bob.pk}/history/")


def test_the_first_page_names_places_in_words_of_the_product():
    shown = page(signed_in(), "/admin/")

    assert "Write-only secrets for tools" in shown
    for jargon in ("Authentication and Authorization", "Recent actions", "My actions"):
        assert jargon not in shown


def helper_with(*codenames, name="helper"):
    """A client of a staff member with these permissions, and their row."""
    user = make_user(name, is_staff=True)
    user.user_permissions.set(map(right, codenames))
    client = Client()
    client.force_login(user)
    return client, user


PEOPLE_RIGHTS = ("view_user", "change_user", "delete_user")


@pytest.mark.parametrize("flag", ["is_superuser", "is_staff"])
def test_only_superusers_appoint_superusers_and_staff(flag):
    client, helper = helper_with(*PEOPLE_RIGHTS)
    bob = make_user("bob")

    for user in (bob, helper):  # the helper's own permissions are cleared last
        client.post(
            f"{LIST}{user.pk}/change/",
            {"username": user.username, "is_active": "on", flag: "on"},
        )

    assert not User.objects.filter(is_superuser=True).exists()
    assert list(User.objects.filter(is_staff=True)) == [helper]


def test_the_account_of_a_superuser_is_read_only_for_others():
    client, _helper = helper_with(*PEOPLE_RIGHTS)
    root = make_user("root", is_superuser=True, email="root@example.com")
    secret = "a-long-enough-one"

    answers = [
        client.post(
            f"{LIST}{root.pk}/password/", {"password1": secret} | {"password2": secret}
        ),
        client.post(f"{LIST}{root.pk}/change/", {"username": "root", "email": "x@y.z"}),
        client.post(f"{LIST}{root.pk}/delete/", {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert "Set password" not in page(client, f"{LIST}{root.pk}/change/")
    assert not Client().login(username="root", password=secret)
    assert User.objects.get(pk=root.pk).email == "root@example.com"


@pytest.mark.parametrize("through", ["own", "group"])
@pytest.mark.parametrize("is_active", [True, False])
def test_an_account_with_further_permissions_is_read_only(through, is_active):
    client, _helper = helper_with(*PEOPLE_RIGHTS)
    toolmaker = make_user("toolmaker", is_staff=True, is_active=is_active)
    if through == "own":
        toolmaker.user_permissions.add(right("add_tool"))
    else:
        group = Group.objects.create(name="Tools")
        group.permissions.add(right("add_tool"))
        toolmaker.groups.add(group)
    secret = "a-long-enough-one"

    answer = client.post(
        f"{LIST}{toolmaker.pk}/password/", {"password1": secret, "password2": secret}
    )

    assert answer.status_code == 403
    assert client.post(f"{LIST}{toolmaker.pk}/change/", {}).status_code == 403


def test_only_held_permissions_are_granted_to_users():
    client, helper = helper_with(*PEOPLE_RIGHTS)
    bob = make_user("bob")
    held = [right(name).pk for name in PEOPLE_RIGHTS]

    for user in (helper, bob):
        for ticks in ([*held, right("add_tool").pk], held):
            client.post(
                f"{LIST}{user.pk}/change/",
                {"username": user.username, "is_active": "on"}
                | {"user_permissions": ticks},
            )

    assert {right.pk for right in bob.user_permissions.all()} == set(held)
    assert not User.objects.filter(user_permissions=right("add_tool")).exists()


def test_a_group_with_further_permissions_takes_no_members():
    client, helper = helper_with(*PEOPLE_RIGHTS)
    strong, plain = (Group.objects.create(name=name) for name in ("Strong", "Plain"))
    strong.permissions.add(right("add_tool"), right("view_user"))
    bob = make_user("bob")
    same = {"username": "bob", "is_active": "on"}

    client.post(f"{LIST}{bob.pk}/change/", same | {"groups": [strong.pk]})
    assert not bob.groups.exists()
    client.post(f"{LIST}{bob.pk}/change/", same | {"groups": [plain.pk]})

    assert list(bob.groups.all()) == [plain]
    assert "Strong" not in page(client, f"{LIST}{bob.pk}/change/")


def test_only_held_permissions_are_granted_to_groups():
    client, helper = helper_with("view_group", "change_group", "delete_group")
    own, strong = (Group.objects.create(name=name) for name in ("Own", "Strong"))
    strong.permissions.add(right("add_tool"))
    helper.groups.add(own)
    groups = "/admin/auth/group/"

    for wanted in ("change_user", "view_group"):
        client.post(
            f"{groups}{own.pk}/change/",
            {"name": "Own", "permissions": [right(wanted).pk]},
        )

    assert list(own.permissions.all()) == [right("view_group")]
    for action, body in (("change", {"name": "Mine"}), ("delete", {"post": "yes"})):
        assert client.post(f"{groups}{strong.pk}/{action}/", body).status_code == 403


def test_no_copy_of_an_account_is_saved():
    bob = make_user("bob")
    data = {"username": "bobby", "_saveasnew": "1"}

    answer = signed_in().post(f"{LIST}{bob.pk}/change/", data)

    assert answer.status_code == 400
    assert not User.objects.filter(username="bobby").exists()


GROUPS = "/admin/auth/group/"
MEMBER_RIGHTS = ("view_group", "change_group", "change_user")


def save_group(client, group, *members, **more):
    data = {"name": group.name, "users": [user.pk for user in members]} | more
    return client.post(f"{GROUPS}{group.pk}/change/", data)


def test_members_are_changed_on_the_page_of_the_group_and_audited():
    group = Group.objects.create(name="Support")
    bob, eve = make_user("bob", first_name="Bob", last_name="Ray"), make_user("eve")
    gone = make_user("gone", is_active=False)
    group.user_set.add(eve, gone)
    client = signed_in()

    shown = page(client, f"{GROUPS}{group.pk}/change/")
    assert "Bob Ray (bob)" in shown
    assert "gone, cannot sign in" in shown
    save_group(client, group, bob, gone)

    assert set(group.user_set.all()) == {bob, gone}
    entries = AuditEntry.objects.filter(noun="group", thing="Support")
    message = str([entry.changes for entry in entries])
    assert "bob" in message
    assert "eve" in message


def test_a_group_is_created_with_its_members():
    bob = make_user("bob")

    signed_in().post(f"{GROUPS}add/", {"name": "Support", "users": [bob.pk]})

    assert list(Group.objects.get().user_set.all()) == [bob]


def test_only_users_without_further_permissions_become_or_stop_being_members():
    client, helper = helper_with(*MEMBER_RIGHTS)
    group = Group.objects.create(name="Support")
    root, toolmaker = make_user("root", is_superuser=True), make_user("toolmaker")
    toolmaker.user_permissions.add(right("add_tool"))
    bob = make_user("bob")
    group.user_set.add(root)

    shown = page(client, f"{GROUPS}{group.pk}/change/")
    assert "with permissions that you do not have: root" in shown
    assert "toolmaker" not in shown
    save_group(client, group, bob, helper)
    assert set(group.user_set.all()) == {root, bob, helper}
    assert save_group(client, group, toolmaker).status_code == 200  # refused

    assert set(group.user_set.all()) == {root, bob, helper}


def test_a_group_with_further_permissions_is_not_joined_on_its_page():
    client, helper = helper_with(*MEMBER_RIGHTS)
    strong = Group.objects.create(name="Strong")
    strong.permissions.add(right("add_tool"))

    assert save_group(client, strong, helper).status_code == 403
    assert "Users" in page(client, f"{GROUPS}{strong.pk}/change/")
    assert not strong.user_set.exists()


def test_who_may_not_change_users_reads_the_members():
    client, helper = helper_with("view_group", "change_group")
    group = Group.objects.create(name="Support")
    bob = make_user("bob")
    group.user_set.add(bob)

    shown = page(client, f"{GROUPS}{group.pk}/change/")
    assert "bob" in shown
    assert 'name="users"' not in shown
    save_group(client, group, helper)

    assert list(group.user_set.all()) == [bob]


def test_permissions_and_members_of_one_form_cannot_exceed_those_held():
    client, helper = helper_with(*MEMBER_RIGHTS)
    group, bob = Group.objects.create(name="Support"), make_user("bob")

    save_group(client, group, bob, permissions=[right("add_tool").pk])
    save_group(client, group, bob, permissions=[right("view_group").pk])

    assert not User.objects.filter(groups__permissions=right("add_tool")).exists()
    assert list(group.permissions.all()) == [right("view_group")]
