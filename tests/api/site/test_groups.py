"""Groups through the API."""

import pytest
from django.contrib.auth.models import Group, Permission

from runs.models import ApiToken
from tests.api.make_client import Api, fields_of
from tests.make import make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

ALL = tuple(ApiToken.Scope.values)


def make_helper(*codenames):
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def make_strong_group():
    group = Group.objects.create(name="strong")
    group.permissions.add(Permission.objects.get(codename="add_tool"))
    return group


@pytest.fixture
def api():
    return Api(make_user("root", is_superuser=True), scopes=ALL)


def test_a_group_is_created_with_members_and_changed(api):
    ann, eve = make_user("ann"), make_user("eve")

    made = api.post("groups", {"name": "crew", "members": ["ann"]})
    path = f"groups/{made.json()['id']}"
    changed = api.patch(
        path, {"name": "team", "members": ["eve"]}, If_Match=made.headers["ETag"]
    )
    stale = api.patch(path, {"name": "x"}, If_Match=made.headers["ETag"])

    assert (made.status_code, made.json()["members"]) == (201, ["ann"])
    assert changed.json()["members"] == ["eve"]
    assert stale.status_code == 412
    group = Group.objects.get()
    assert (group.name, list(group.user_set.all())) == ("team", [eve])
    assert not ann.groups.exists()
    assert AuditEntry.objects.filter(noun="group", by="root", way="api").exists()


def test_a_refused_group_names_its_field(api):
    Group.objects.create(name="crew")

    taken = api.post("groups", {"name": "crew"})
    unknown = api.post("groups", {"name": "x", "members": ["nobody"]})
    rights = api.post("groups", {"name": "x", "permissions": ["add_tool"]})

    assert fields_of(taken) == ["name"]
    assert fields_of(unknown) == ["members"]
    assert fields_of(rights) == ["permissions"]
    assert Group.objects.count() == 1


def test_nobody_joins_or_changes_a_group_with_further_permissions():
    helper, group = make_helper("change_group", "change_user"), make_strong_group()
    api = Api(helper, scopes=ALL)

    assert api.patch(f"groups/{group.pk}", {"members": ["helper"]}).status_code == 403
    assert api.patch(f"groups/{group.pk}", {"name": "weak"}).status_code == 403
    assert not helper.groups.exists()


def test_members_with_further_permissions_stay():
    helper, root = make_helper("change_group", "change_user"), make_user("root")
    root.user_permissions.add(Permission.objects.get(codename="add_tool"))
    group = Group.objects.create(name="crew")
    group.user_set.add(root)
    api = Api(helper, scopes=ALL)

    emptied = api.patch(f"groups/{group.pk}", {"members": []})

    assert emptied.json()["members"] == ["root"]
    other = make_user("strong")
    other.user_permissions.add(Permission.objects.get(codename="add_tool"))
    refused = api.patch(f"groups/{group.pk}", {"members": ["root", "strong"]})
    assert fields_of(refused) == ["members"]


def test_members_need_the_permission_to_change_users():
    api = Api(make_helper("add_group", "change_group"), scopes=ALL)

    refused = api.post("groups", {"name": "crew", "members": ["helper"]})

    assert refused.status_code == 403
    assert not Group.objects.exists()
    assert api.post("groups", {"name": "crew"}).status_code == 201


def test_a_group_is_read_by_members_and_by_staff_who_may_view_it():
    group = Group.objects.create(name="crew")
    path = f"groups/{group.pk}"
    member = make_user("member")
    member.groups.add(group)

    assert Api(member).get(path).json()["members"] == ["member"]
    assert Api(make_user("other")).get(path).status_code == 404
    assert Api(make_helper("view_group")).get(path).status_code == 200
