"""The page of the audit log."""

import csv
import io

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from tests.tools.rows import make_tool, make_user
from tools.admin.audit import MAX_SUMMARY_FIELDS
from tools.audit.actor import act_as
from tools.audit.entry import AuditEntry
from tools.audit.tracking import _tracked_models
from tools.audit.write import write_entry
from tools.ui.audit_labels import FIELD_LABELS

pytestmark = pytest.mark.django_db

LIST = "/admin/tools/auditentry/"


def signed_in(name="admin", **more):
    client = Client()
    client.force_login(
        make_user(name, **{"is_staff": True, "is_superuser": True, **more})
    )
    return client


def page(client, address, **query):
    answer = client.get(address, query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_shows_who_changed_what():
    client = signed_in()
    with act_as(make_user("bob")):
        tool = make_tool()
        tool.timeout = 5
        tool.save()

    shown = page(client, LIST, noun="tool")

    assert "changed tool" in shown
    assert "bob" in shown
    assert "<del>60.0</del> → <ins>5.0</ins>" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"action": "approved"}, {"run 1"}),
        ({"noun": "tool"}, {"add"}),
        ({"by": "bob"}, {"run 1"}),
        ({"way": "server"}, {"add"}),
        ({"q": "run"}, {"run 1"}),
        ({"thing_number": "7"}, {"add"}),
    ],
)
def test_the_list_can_be_filtered(query, found):
    client = signed_in()
    with act_as(make_user("bob")):
        write_entry("approved", "tool call", "run 1")
    write_entry("changed", "tool", "add", number=7)

    shown = page(client, LIST, **query)

    words = {word for word in ("run 1", "add") if f'field-which">{word}<' in shown}
    assert words == found


def test_the_list_has_pages():
    client = signed_in()
    for number in range(60):
        write_entry("changed", "tool", f"tool {number}")

    assert 'field-which">tool 59<' in page(client, LIST)
    assert 'field-which">tool 0<' in page(client, LIST, p="2")


def test_one_entry_is_shown_in_full():
    client = signed_in()
    entry = write_entry(
        "changed", "tool", "add", changes={f"f{n}": [n, "x" * 99] for n in range(9)}
    )

    shown = page(client, f"{LIST}{entry.pk}/change/")

    assert "x" * 99 in shown
    assert "<dt>f8</dt>" in shown
    assert "more</dt>" not in " ".join(shown.split())


def test_the_list_counts_the_fields_it_leaves_out():
    client = signed_in()
    for count in (MAX_SUMMARY_FIELDS, MAX_SUMMARY_FIELDS + 2):
        changes = {f"f{n}": [n, n + 1] for n in range(count)}
        write_entry("changed", "tool", f"with {count}", changes=changes)

    shown = " ".join(page(client, LIST, noun="tool").split())

    assert shown.count("and 2 more</dt>") == 1
    assert shown.count("more</dt>") == 1
    assert f"<dt>f{MAX_SUMMARY_FIELDS - 1}</dt>" in shown
    assert f"<dt>f{MAX_SUMMARY_FIELDS}</dt>" not in shown


def test_people_groups_tools_and_keys_are_tracked():
    nouns = {tracked.noun for tracked in _tracked_models.values()}

    assert nouns >= {"tool", "credential", "MCP server", "user", "group"}


def test_fields_are_called_by_their_words():
    client = signed_in()
    changes = {
        "is_superuser": [False, True],
        "calls_per_run": [None, 3],
        "config.base_url": ["a", "b"],
    }
    write_entry("changed", "user", "bob", changes=changes)

    shown = page(client, LIST, noun="user")

    for words in ("superuser", "calls per run", "configuration: base_url"):
        assert f"<dt>{words}</dt>" in shown
    assert "is_superuser" not in shown


def test_the_file_holds_what_the_filters_let_through():
    client = signed_in()
    write_entry("approved", "tool call", "run 1", note="=1+1")
    write_entry("changed", "tool", "add")

    answer = client.get(f"{LIST}csv/", {"noun": "tool call"})

    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert "attachment" in answer["Content-Disposition"]
    assert [(row["thing"], row["note"]) for row in rows] == [("run 1", "'=1+1")]


def test_nobody_changes_the_log():
    client = signed_in()
    entry = write_entry("changed", "tool", "add")

    for address in ("add/", f"{entry.pk}/delete/"):
        assert client.post(f"{LIST}{address}").status_code == 403
    assert client.post(f"{LIST}{entry.pk}/change/", {"by": "eve"}).status_code == 403
    client.post(LIST, {"action": "delete_selected", "_selected_action": [entry.pk]})
    assert AuditEntry.objects.filter(pk=entry.pk, by="").exists()


def test_staff_see_it_only_where_they_were_allowed_to():
    client = signed_in("bob", is_superuser=False)
    assert client.get(LIST).status_code == 403
    assert client.get(f"{LIST}csv/").status_code == 403

    bob = make_user("bob")
    bob.user_permissions.add(Permission.objects.get(codename="view_auditentry"))

    assert client.get(LIST).status_code == 200
    assert LIST in page(client, "/")


def test_a_save_in_the_admin_names_the_person():
    client = signed_in("cleo")
    client.post("/admin/auth/group/add/", {"name": "Support"})

    entry = AuditEntry.objects.get(noun="group")
    assert (entry.by, entry.action, entry.thing) == ("cleo", "made", "Support")


def test_each_field_of_the_log_has_a_label():
    missing = {
        field.name
        for model, tracked in _tracked_models.items()
        for field in [*model._meta.concrete_fields, *model._meta.many_to_many]
        if field.name not in {*tracked.ignore, *FIELD_LABELS}
    }

    assert missing == set()
