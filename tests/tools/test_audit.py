"""The audit log: what is written by itself, and what is never in it."""

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from tests.tools.rows import make_tool, make_user
from tools.audit.actor import act_as
from tools.audit.entry import AppendOnlyViolation, AuditEntry
from tools.audit.masking import mask_json_value
from tools.audit.write import write_entry
from tools.definition.save import save_tool
from tools.models import Credential, Tool
from tools.secrets import seal

pytestmark = pytest.mark.django_db


def newest(noun: str = "tool") -> AuditEntry:
    entry = AuditEntry.objects.filter(noun=noun).first()
    assert entry is not None
    return entry


def test_a_new_tool_is_kept_with_what_it_is():
    ann = make_user()
    with act_as(ann):
        tool = make_tool(description="Adds.")

    entry = newest()
    assert (entry.by, entry.by_number, entry.way) == ("ann", ann.pk, "page")
    assert (entry.action, entry.thing, entry.thing_number) == ("made", "add", tool.pk)
    assert entry.changes["description"] == [None, "Adds."]
    assert entry.changes["owner"] == [None, f"ann (#{ann.pk})"]


def test_a_change_is_kept_before_and_after():
    tool = make_tool(config={"url": "https://a.example", "method": "GET"})
    tool.config = {"url": "https://b.example", "method": "GET"}
    tool.timeout = 5
    with act_as(make_user("bob"), way="api"):
        save_tool(tool, by=None)

    entry = newest()
    assert (entry.by, entry.way, entry.action) == ("bob", "api", "changed")
    assert entry.changes == {
        "config.url": ["https://a.example", "https://b.example"],
        "timeout": [60.0, 5],
    }


def test_saving_without_a_change_writes_nothing():
    tool = make_tool()
    before = AuditEntry.objects.count()

    tool.save()

    assert AuditEntry.objects.count() == before


def test_a_save_of_columns_that_move_by_themselves_reads_nothing(
    django_assert_num_queries,
):
    user = make_user()

    with django_assert_num_queries(1):
        user.save(update_fields=["last_login"])


@pytest.mark.parametrize(
    ("column", "value", "word"),
    [
        ("enabled", False, "disabled"),
        ("archived_at", "2026-11-21T10:00:00+00:00", "archived"),
    ],
)
def test_a_switch_has_its_own_word(column, value, word):
    tool = make_tool()
    setattr(tool, column, value)

    tool.save()

    assert newest().action == word


def test_what_commands_and_workers_do_is_the_servers():
    make_tool()

    assert (newest().by, newest().by_number, newest().way) == ("", None, "server")


def test_a_secret_is_never_kept():
    row = Credential.objects.create(
        name="shop", owner=make_user(), hosts=["a.example"], sealed=seal("s3cret")
    )
    row.sealed = seal("an0ther")
    row.save()

    assert newest("credential").changes == {"sealed": ["[secret]", "[secret]"]}
    kept = str(list(AuditEntry.objects.values()))
    assert "s3cret" not in kept
    assert "an0ther" not in kept
    assert "gAAAA" not in kept


def test_a_new_password_is_kept_without_its_hash():
    ann = make_user()
    ann.set_password("hunter2hunter2")
    ann.save()

    assert newest("user").changes["password"][1] == "[secret]"


def test_who_came_into_a_group_is_kept():
    ann, staff = make_user(), Group.objects.create(name="Support")
    with act_as(make_user("bob")):
        ann.groups.add(staff)

    entry = newest("user")
    assert (entry.by, entry.thing) == ("bob", "ann")
    assert entry.changes == {"groups": [None, ["Support"]]}


def test_leaving_all_groups_is_kept():
    ann, staff = make_user(), Group.objects.create(name="Support")
    ann.groups.add(staff)

    ann.groups.clear()

    assert newest("user").changes == {"groups": [["Support"], None]}


def test_a_member_added_from_the_groups_side_is_kept():
    ann, staff = make_user(), Group.objects.create(name="Support")

    staff.user_set.add(ann)

    assert newest("group").changes == {"members": [None, ["ann"]]}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"Authorization": "Bearer x1"}, {"Authorization": "[secret]"}),
        ({"X-Api-Key": "x1"}, {"X-Api-Key": "[secret]"}),
        ({"api_key": "{key}"}, {"api_key": "{key}"}),
        ({"X-Auth": "s3cret"}, {"X-Auth": "[secret]"}),
        ({"author": "Ann", "X-Author": "Ann"}, {"author": "Ann", "X-Author": "Ann"}),
        ({"max_tokens": 7}, {"max_tokens": 7}),
        (
            "https://a.example/?q=1&api_key=x1",
            "https://a.example/?q=1&api_key=[secret]",
        ),
        ("https://ann:pw@a.example/", "https://[secret]@a.example/"),
        ([{"deep": {"password": "x1"}}], [{"deep": {"password": "[secret]"}}]),
        ("plain", "plain"),
    ],
)
def test_what_looks_like_a_secret_is_masked(value, kept):
    assert mask_json_value(value) == kept


def test_of_a_long_text_that_part_is_kept_which_differs():
    tool = make_tool(description="a" * 500 + " one " + "b" * 500)
    tool.description = "a" * 500 + " two " + "b" * 500
    tool.save()

    before, after = newest().changes["description"]
    assert before == "…" + "a" * 59 + " one " + "b" * 59 + "…"
    assert after == "…" + "a" * 59 + " two " + "b" * 59 + "…"


@pytest.mark.parametrize(
    ("before", "after"),
    [("x" * 400, "x" * 401), ("x" * 401, "x" * 400), ("ab" * 200, "ba" * 200)],
)
def test_a_text_that_only_grew_or_shrank_is_kept_in_part(before, after):
    tool = make_tool(description=before)
    tool.description = after
    tool.save()

    assert newest().action == "changed"
    assert newest().changes["description"][0] != newest().changes["description"][1]


def test_a_long_text_is_kept_in_part():
    entry = write_entry("changed", "tool", "add", changes={"x": ["a", "b" * 9_000]})

    assert entry.changes["x"][1].endswith("… (9000 characters)")


def test_text_that_no_database_takes_is_kept_without_it():
    entry = write_entry("changed", "tool", "a\0\ud800", note="\0")
    entry.refresh_from_db()

    assert "\0" not in entry.thing + entry.note


def test_what_was_written_cannot_be_changed():
    make_tool()
    entry = newest()

    for change in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(by="eve"),
    ):
        with pytest.raises(AppendOnlyViolation):
            change()


class Oops(Exception):
    """Something went wrong afterwards."""


def make_and_fail() -> None:
    with transaction.atomic():
        make_tool()
        raise Oops


def test_a_change_that_is_rolled_back_leaves_no_entry():
    with pytest.raises(Oops):
        make_and_fail()

    assert not Tool.objects.exists()
    assert not AuditEntry.objects.filter(noun="tool").exists()
