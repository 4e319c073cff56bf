"""What can be done with tools."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from django.contrib.auth.models import Group, User

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.rows import make_tool, make_user
from tools.definition.ensure_builtin import ensure_builtin_tools
from tools.definition.freeze import freeze_tool
from tools.definition.permission import find_tool_block
from tools.definition.record_usage import record_usage
from tools.definition.save import save_tool
from tools.models import Tool, ToolUsage
from tools.ownership import Visibility
from tools.services.try_tool import try_tool

pytestmark = pytest.mark.django_db


class Use(NamedTuple):
    tool_id: int
    failed: bool = False
    seconds: float = 0.1
    error: str = ""


def test_a_spec_holds_what_a_run_needs():
    tool = make_tool(timeout=7, retries=2, effect="read")

    spec = freeze_tool(tool)

    assert (spec.name, spec.timeout, spec.retries, spec.effect) == (
        *(tool.name, 7, 2),
        "read",
    )
    assert (spec.tool_id, spec.revision) == (tool.pk, tool.revision)


def test_a_function_brings_its_description_and_schema():
    spec = freeze_tool(make_tool(description="", args_schema=None))

    assert spec.description == "Return the sum."
    assert spec.args_schema is not None
    assert set(spec.args_schema["properties"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("policy", "approval", "effect", "asks"),
    [
        ("default", "never", "side_effect", False),
        ("default", "side_effects", "side_effect", True),
        ("default", "side_effects", "read", False),
        ("default", "side_effects", "idempotent", False),
        ("default", "always", "read", True),
        ("ask", "never", "read", True),
        ("allow", "side_effects", "side_effect", False),
        ("allow", "always", "read", True),
    ],
)
def test_policy_approval_and_effect_say_whether_a_person_is_asked(
    policy, approval, effect, asks
):
    tool = make_tool(approval=approval, effect=effect)

    assert freeze_tool(tool, policy=policy).asks is asks


@pytest.mark.parametrize(
    ("approval", "effect", "asks"),
    [
        ("never", "side_effect", False),
        ("side_effects", "side_effect", True),
        ("side_effects", "read", False),
    ],
)
def test_no_agent_takes_the_question_from_the_people_a_tool_names(
    approval, effect, asks
):
    people = Group.objects.create(name="finance")
    tool = make_tool(approval=approval, effect=effect, approvers=people)

    assert freeze_tool(tool, policy="allow").asks is asks


def test_an_agent_may_see_some_fields_otherwise():
    spec = freeze_tool(make_tool(), overrides={"name": "plus", "approval_hours": 2})

    assert (spec.name, spec.approval_hours) == ("plus", 2)


@pytest.mark.parametrize(
    ("of_tool", "of_agent", "counts"),
    [
        ("read", "idempotent", "idempotent"),
        ("read", "side_effect", "side_effect"),
        ("idempotent", "read", "idempotent"),
        ("side_effect", "read", "side_effect"),
        ("idempotent", None, "idempotent"),
        ("idempotent", "nothing", "idempotent"),
    ],
)
def test_a_call_counts_as_no_less_than_the_tool_says(of_tool, of_agent, counts):
    tool = make_tool(effect=of_tool, approval="side_effects")

    spec = freeze_tool(tool, overrides={"effect": of_agent})

    assert spec.effect == counts
    assert spec.asks is (counts == "side_effect")


@pytest.mark.parametrize(("of_agent", "counts"), [(3, 3), (0.5, 0.5), (60, 5), (0, 5)])
def test_a_call_takes_no_longer_than_the_tool_says(of_agent, counts):
    spec = freeze_tool(make_tool(timeout=5), overrides={"timeout": of_agent})

    assert spec.timeout == counts


@pytest.mark.parametrize(("of_agent", "counts"), [(0, 0), (1, 1), (5, 2), (None, 2)])
def test_a_call_is_tried_no_more_often_than_the_tool_says(of_agent, counts):
    spec = freeze_tool(make_tool(retries=2), overrides={"retries": of_agent})

    assert spec.retries == counts


@pytest.mark.parametrize(
    ("of_tool", "of_agent", "counts"),
    [(None, 3, 3), (5, 3, 3), (5, 9, 5), (5, None, 5), (5, "many", 5), (None, 0, None)],
)
def test_a_limit_of_the_tool_only_grows_tighter(of_tool, of_agent, counts):
    tool = make_tool(calls_per_run=of_tool, output_limit=of_tool)
    overrides = {"calls_per_run": of_agent, "output_limit": of_agent}

    spec = freeze_tool(tool, overrides=overrides)

    assert (spec.calls_per_run, spec.output_limit) == (counts, counts)


@pytest.mark.parametrize(
    ("of_tool", "of_agent", "counts"),
    [
        ([], [], None),
        (["a.example"], [], ["a.example"]),
        ([], ["a.example"], ["a.example"]),
        (["*.b.example"], ["x.b.example", "a.example"], ["x.b.example"]),
        (["a.example"], ["b.example"], [""]),
    ],
)
def test_an_agent_reaches_no_more_hosts_than_the_tool(of_tool, of_agent, counts):
    spec = freeze_tool(make_tool(hosts=of_tool), overrides={"hosts": of_agent})

    assert spec.config.get("hosts") == counts


def test_each_change_of_a_tool_is_a_revision():
    ann = make_user("ann")
    tool = save_tool(make_tool(), by=ann, note="first")

    tool.timeout = 5
    save_tool(tool, by=ann, note="shorter")

    assert [(r.number, r.note, r.by) for r in tool.revisions.all()] == [
        (2, "shorter", ann),
        (1, "first", ann),
    ]
    assert Tool.objects.get(pk=tool.pk).revision == 2


def test_saving_without_a_change_makes_no_revision():
    tool = save_tool(make_tool(), by=None)

    save_tool(tool, by=None)

    assert tool.revisions.count() == 1


def test_every_built_in_tool_is_ready_to_pick():
    made = {tool.slug: tool for tool in ensure_builtin_tools(make_user("admin"))}

    assert {"calculator", "clock", "weather-sample"} <= set(made)
    assert made["weather-sample"].name == "weather_sample"
    assert made["calculator"].effect == "read"
    assert made["calculator"].visibility == Visibility.EVERYONE
    assert made["calculator"].approval == Tool.Approval.NEVER


def test_what_a_person_changed_stays_that_way():
    admin = make_user("admin")
    ensure_builtin_tools(admin)
    Tool.objects.filter(slug="clock").update(enabled=False)

    assert ensure_builtin_tools(admin) == []
    assert not Tool.objects.get(slug="clock").enabled


def test_functions_of_the_operator_are_not_published_by_themselves():
    ensure_builtin_tools(make_user("admin"))

    assert not Tool.objects.filter(config__function__startswith="tests.").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"enabled": False}, "is disabled"),
        ({"archived_at": datetime(2026, 1, 1, tzinfo=UTC)}, "was archived"),
    ],
)
def test_a_tool_that_is_withdrawn_may_not_run(change, why):
    tool = make_tool(**change)

    assert why in (find_tool_block(tool.pk) or "")


def test_a_tool_whose_owner_left_may_not_run():
    tool = make_tool()
    User.objects.filter(pk=tool.owner_id).update(is_active=False)

    assert "no longer has access" in (find_tool_block(tool.pk) or "")


def test_a_tool_that_is_gone_may_not_run():
    assert find_tool_block(999_999) == "This tool no longer exists."


def test_a_tool_may_run_for_those_who_may_use_it():
    tool = make_tool()

    assert find_tool_block(tool.pk) is None
    assert find_tool_block(tool.pk, user=tool.owner) is None
    assert "may no longer use" in (
        find_tool_block(tool.pk, user=make_user("eve")) or ""
    )


def test_trying_a_tool_returns_what_a_model_would_read():
    tool = make_tool(config={"function": "tests.tools.functions:returns"})

    result = try_tool(tool, {"what": "dataclass"}, by=tool.owner)

    assert (result.value_text, result.error) == ('{"x":1,"y":2}', "")
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({"a": 1}, "'b' is a required property."), ({"a": "x", "b": 1}, "a: 'x' is not")],
)
def test_trying_a_tool_with_wrong_arguments_is_a_sentence(arguments, why):
    result = try_tool(make_tool(), arguments, by=make_user("admin", is_superuser=True))

    assert why in result.error


def test_a_tool_that_is_switched_off_can_be_tried_by_those_who_may_change_it():
    tool = make_tool(enabled=False, visibility=Visibility.EVERYONE)
    root = make_user("root", is_superuser=True)

    assert try_tool(tool, {"a": 1, "b": 2}, by=tool.owner).value_text == "3"
    assert try_tool(tool, {"a": 1, "b": 2}, by=root).value_text == "3"
    message = try_tool(tool, {"a": 1, "b": 2}, by=make_user("bob")).error
    assert message == "The tool 'add' is disabled."


@pytest.mark.parametrize("enabled", [False, True])
def test_nobody_tries_a_tool_that_is_archived_or_whose_owner_left(enabled):
    archived = make_tool(enabled=enabled, archived_at=datetime(2026, 1, 1, tzinfo=UTC))
    gone = make_user("gone", is_active=False)
    left = make_tool(enabled=enabled, owner=gone, slug="left")
    root = make_user("root", is_superuser=True)

    tries = [try_tool(one, {"a": 1, "b": 2}, by=root) for one in (archived, left)]

    assert "was archived" in tries[0].error
    assert "no longer has access" in tries[1].error


def test_each_try_has_a_key_of_its_own():
    tool = make_tool(config={"function": "tests.tools.functions:tells_context"})

    keys = {try_tool(tool, {"word": "x"}, by=tool.owner).value_text for _ in "ab"}

    assert len(keys) == 2
    assert all('"key":"try:' in key.replace(" ", "") for key in keys)


def test_use_is_added_up_by_the_hour():
    tool = make_tool()
    at = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)

    record_usage([Use(tool.pk), Use(tool.pk, True, 0.2, "It broke.")], at=at)
    record_usage([Use(tool.pk)], at=at)

    row = ToolUsage.objects.get(tool=tool)
    assert (row.calls, row.failures, row.ms) == (3, 1, 400)
    assert row.hour == datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_the_last_use_and_error_are_kept():
    tool = make_tool()
    at = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)

    record_usage([Use(tool.pk, True, 0.2, "It broke."), Use(tool.pk)], at=at)

    tool.refresh_from_db()
    assert (tool.last_used_at, tool.last_error) == (at, "It broke.")


def test_use_of_a_tool_that_is_gone_is_dropped():
    record_usage([Use(999_999)])

    assert not ToolUsage.objects.exists()
