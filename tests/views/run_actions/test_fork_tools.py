"""The tools and agents that the form of a fork offers."""

import pytest

from runs.forms.runs.fork_tools import ForkTools
from runs.store.specs import load_spec
from tests.make import make_agent, make_run, make_tool, make_user
from tools.definition.freeze import freeze_tool

pytestmark = pytest.mark.django_db


def offered(run, user, typed=None, *, tools=(), may_edit=True):
    spec = load_spec(run.spec).model_copy(
        update={"tools": tuple(freeze_tool(tool) for tool in tools)}
    )
    return ForkTools(spec, typed or {}, run=run, user=user, may_edit=may_edit)


@pytest.fixture
def ann():
    return make_user("ann")


@pytest.fixture
def run(ann):
    return make_run(ann, agent=make_agent(ann))


def permissions(choice):
    return {row.spec.name: row.permission for row in choice.rows()}


def test_the_runs_tools_come_first_and_others_are_off(ann, run):
    have, other = make_tool(ann, name="have"), make_tool(ann, name="other")
    asking = make_tool(ann, name="asking", approval="always")

    choice = offered(run, ann, tools=[have, asking])

    assert list(permissions(choice))[:2] == ["have", "asking"]
    assert permissions(choice)["have"] == "allow"
    assert permissions(choice)["asking"] == "ask"
    assert permissions(choice)[other.name] == "off"
    assert not choice.are_changed
    assert choice.edited_tools() is None


@pytest.mark.parametrize("may_edit", [True, False])
def test_others_are_offered_only_to_those_who_may_edit(ann, run, may_edit):
    make_tool(ann, name="other")
    make_agent(ann, name="Weather")

    choice = offered(run, ann, may_edit=may_edit)

    assert len(choice.rows()) == (2 if may_edit else 0)
    assert [row.is_agent for row in choice.rows()] == [False, True][: 2 * may_edit]


def test_tools_that_one_of_the_two_may_not_use_are_not_offered(ann, run):
    bob = make_user("bob")
    make_tool(ann, name="of_ann")
    make_tool(bob, name="of_bob")
    make_tool(bob, name="shared", visibility="everyone")

    assert set(permissions(offered(run, bob))) == {"shared"}


def test_what_was_chosen_becomes_the_tools_of_the_fork(ann, run):
    have, other = make_tool(ann, name="have"), make_tool(ann, name="other")
    rest = make_tool(ann, name="rest")

    choice = offered(
        run, ann, {"tool-have": "off", "tool-other": "ask"}, tools=[have, rest]
    )

    assert choice.are_changed
    edited = choice.edited_tools()
    assert edited is not None
    assert [(tool.name, tool.asks) for tool in edited] == [
        ("rest", False),
        (other.name, True),
    ]


def test_an_unknown_choice_changes_nothing(ann, run):
    have = make_tool(ann, name="have")

    choice = offered(run, ann, {"tool-have": "sudo"}, tools=[have])

    assert not choice.are_changed
    assert choice.edited_tools() is None


def test_an_agent_without_a_description_has_one(ann, run):
    make_agent(ann, name="Weather")

    (row,) = offered(run, ann).rows()

    assert row.description == "Asks the agent Weather and returns its answer."
    assert row.field == f"agent-{row.spec.name}"
