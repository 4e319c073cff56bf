"""Who may see and use a definition; the same for every table."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group

from tests.make import make_agent, make_prompt, make_provider, make_tool, make_user
from tools.models import Credential, McpServer

pytestmark = pytest.mark.django_db


def make_credential(owner, **fields):
    return Credential.objects.create(
        owner=owner, name="c", hosts=["a.example"], **fields
    )


def make_server(owner, **fields):
    return McpServer.objects.create(
        owner=owner, name="m", url="https://a.example/mcp", **fields
    )


TABLES = pytest.mark.parametrize(
    "make",
    [make_agent, make_prompt, make_provider, make_tool, make_credential, make_server],
)


def usable(thing, user) -> bool:
    """Whether `user` may use `thing`; seeing it must agree."""
    rows = type(thing).objects
    seen = rows.visible_to(user).filter(pk=thing.pk).exists()
    assert rows.usable_by(user).filter(pk=thing.pk).exists() == seen
    return seen


@TABLES
def test_private_rows_are_visible_to_owner_and_superusers(make):
    ann = make_user("ann")
    thing = make(ann)

    assert usable(thing, ann)
    assert usable(thing, make_user(is_superuser=True))
    assert not usable(thing, make_user())
    assert not usable(thing, AnonymousUser())


@TABLES
def test_rows_shared_with_a_group_are_visible_to_its_members(make):
    ann, bob, cleo = make_user("ann"), make_user("bob"), make_user("cleo")
    support, sales = (Group.objects.create(name=name) for name in ("Support", "Sales"))
    ann.groups.add(support, sales)
    bob.groups.add(support)
    cleo.groups.add(sales)
    thing = make(ann, visibility="groups")
    thing.groups.add(support)

    assert [usable(thing, one) for one in (ann, bob, cleo)] == [True, True, False]

    bob.groups.remove(support)
    assert not usable(thing, bob)


@TABLES
def test_groups_count_only_where_they_are_meant(make):
    bob, support = make_user("bob"), Group.objects.create(name="Support")
    bob.groups.add(support)
    thing = make(make_user("ann"), visibility="private")
    thing.groups.add(support)

    assert not usable(thing, bob)


@TABLES
def test_rows_for_everyone_are_hidden_from_anonymous_users(make):
    thing = make(make_user("ann"), visibility="everyone")

    assert usable(thing, make_user())
    assert not usable(thing, AnonymousUser())
