"""What is done with the tools selected in the list."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from runs.models import AgentTool, Spec
from runs.services.tools.delete_unused import find_deletable_tools
from tests.make import make_agent, make_user
from tests.tools import functions  # noqa: F401  (registers the function of the tools)
from tests.tools.rows import make_tool
from tools.models import AuditEntry, Tool, ToolUsage

pytestmark = pytest.mark.django_db

SHARED = ("visibility", "private", "everyone")
PRIVATE = ("visibility", "everyone", "private")
ALWAYS = ("approval", "never", "always")
EFFECTS = ("approval", "never", "side_effects")
NEVER = ("approval", "always", "never")


def manager(name="ann"):
    user = make_user(name, is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools")
    )
    return user


def chosen(user, do, *tools, **more):
    client = Client()
    client.force_login(user)
    picked = {"tool": [tool.pk for tool in tools], "do": do, **more}
    return client.post("/tool-selection/", picked, follow=True).content.decode()


@pytest.mark.parametrize(
    ("do", "field", "before", "value"),
    [
        ("enable", "enabled", False, True),
        ("disable", "enabled", True, False),
        ("share", "visibility", "private", "everyone"),
        ("unshare", "visibility", "everyone", "private"),
        ("ask_always", "approval", "never", "always"),
        ("ask_effects", "approval", "never", "side_effects"),
        ("ask_never", "approval", "always", "never"),
    ],
)
def test_an_action_changes_each_tool_with_a_revision(do, field, before, value):
    ann = manager()
    tools = [
        make_tool(name=name, owner=ann, **{field: before})
        for name in ("first", "second")
    ]

    chosen(ann, do, *tools)

    rows = Tool.objects.all()
    assert [getattr(row, field) for row in rows] == [value, value]
    assert [row.revisions.count() for row in rows] == [1, 1]


@pytest.mark.parametrize(
    ("do", "field", "before", "value", "done", "left"),
    [
        ("enable", "enabled", 0, 1, "Enabled 1 tool.", "old was already enabled."),
        ("disable", "enabled", 1, 0, "Disabled 1 tool.", "old was already disabled."),
        *(
            (do, field, before, value, done, "old already had this")
            for do, field, before, value, done in [
                ("share", *SHARED, "Shared 1 tool with everyone."),
                ("unshare", *PRIVATE, "Made 1 tool private."),
                ("ask_always", *ALWAYS, "1 tool always requires approval."),
                ("ask_effects", *EFFECTS, "1 tool requires approval for side effects."),
                ("ask_never", *NEVER, "1 tool no longer requires approval."),
            ]
        ),
    ],
)
def test_only_tools_that_change_are_counted(do, field, before, value, done, left):
    ann = manager()
    old = make_tool(name="old", owner=ann, **{field: value})
    new = make_tool(name="new", owner=ann, **{field: before})

    page = chosen(ann, do, old, new)

    assert done in page
    assert left in page
    assert [old.revisions.count(), new.revisions.count()] == [0, 1]


def test_several_tools_are_counted_in_the_plural():
    ann = manager()
    tools = [make_tool(name=name, owner=ann) for name in ("first", "second")]

    assert "Shared 2 tools with everyone." in chosen(ann, "share", *tools)
    assert "Made 2 tools private." in chosen(ann, "unshare", *tools)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("one",), "The definition and all its revisions are permanently deleted."),
        (
            ("one", "two"),
            "The definitions and all their revisions are permanently deleted. No agent "
            "uses these tools, and no run has called them.",
        ),
    ],
)
def test_the_page_before_deletion_speaks_of_one_tool_or_of_several(names, sentence):
    ann = manager()
    tools = [make_tool(name=name, owner=ann) for name in names]

    page = chosen(ann, "delete", *tools)

    assert sentence in " ".join(page.split())


def test_no_undo_is_offered_if_no_tool_changes():
    ann = manager()
    tool = make_tool(name="old", owner=ann, enabled=False)

    page = chosen(ann, "disable", tool)

    assert "old was already disabled." in page
    assert ">Undo<" not in page


def test_archived_tools_leave_the_list_and_can_be_restored():
    ann = manager()
    tool = make_tool(name="old", owner=ann)

    assert "Archived 1 tool." in chosen(ann, "archive", tool)
    assert Tool.objects.get().archived_at is not None
    chosen(ann, "unarchive", tool)

    assert Tool.objects.get().archived_at is None


def test_tools_of_others_are_left_alone():
    tool = make_tool(owner=make_user("bob"), visibility="everyone")

    page = chosen(manager(), "disable", tool)

    assert "Select tools of yours" in page
    assert Tool.objects.get().enabled


def test_people_who_may_not_edit_tools_are_refused():
    owner = make_user("bob")
    client = Client()
    client.force_login(owner)
    tool = make_tool(owner=owner)

    response = client.post("/tool-selection/", {"tool": [tool.pk], "do": "disable"})

    assert response.status_code == 403
    assert Tool.objects.get().enabled


def test_only_tools_to_which_nothing_refers_are_deleted():
    ann = manager()
    free, given, called, frozen = (
        make_tool(name=name, owner=ann) for name in ("free", "given", "called", "fixed")
    )
    AgentTool.objects.create(agent=make_agent(owner=ann), tool=given)
    ToolUsage.objects.create(tool=called, hour="2026-11-01T00:00:00Z", calls=1)
    Spec.objects.create(digest="x", body={"tools": [{"tool_id": frozen.pk, "a": 1}]})
    tools = (free, given, called, frozen)

    asked = chosen(ann, "delete", *tools)
    assert "Delete 1 tool?" in asked
    assert Tool.objects.count() == 4
    done = chosen(ann, "delete", *tools, sure="1")

    assert "Deleted 1 tool." in done
    assert "3 tools not deleted" in done
    assert {tool.name for tool in Tool.objects.all()} == {"given", "called", "fixed"}
    assert AuditEntry.objects.get(noun="tool", action="deleted").thing == "free"


def test_specs_are_read_once_however_many_tools_are_selected(
    django_assert_num_queries,
):
    ann = manager()
    tools = [make_tool(name=f"tool_{n}", owner=ann).pk for n in range(20)]
    Spec.objects.create(digest="x", body={"tools": [{"tool_id": tools[0]}]})

    with django_assert_num_queries(3):  # keys, specs, tools
        found = list(find_deletable_tools(Tool.objects.filter(pk__in=tools)))

    assert len(found) == 19


def test_a_number_in_a_spec_is_not_the_beginning_of_another():
    ann = manager()
    tool = make_tool(owner=ann)
    Spec.objects.create(digest="x", body={"tools": [{"tool_id": tool.pk * 10}]})

    chosen(ann, "delete", tool, sure="1")

    assert not Tool.objects.exists()


def test_the_selection_is_exported():
    ann = manager()
    tool = make_tool(name="mine", owner=ann)

    assert "name: mine" in chosen(ann, "export", tool)


def test_a_return_address_elsewhere_is_not_followed():
    ann = manager()
    client = Client()
    client.force_login(ann)
    picked = {"tool": [make_tool(owner=ann).pk], "do": "disable"}

    response = client.post("/tool-selection/", {**picked, "here": "//evil.example/"})

    assert response.headers["Location"] == "/tools/"
