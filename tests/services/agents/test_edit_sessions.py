"""What one person types into a draft is one entry of the audit log."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Agent, EditSession, PromptTemplate
from runs.services.agents.edit_sessions import (
    SESSION_IDLE_TIMEOUT,
    end_idle_edit_sessions,
)
from runs.services.agents.manage import archive_definition
from runs.services.agents.publish import publish_agent
from runs.services.agents.restore_version import restore_version
from runs.services.agents.save import ToolAssignment, save_agent
from tests.make import make_agent, make_tool, make_user
from tools.audit.actor import act_as
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def save(agent, who, *, words=None, uses=(), **changes):
    """Save the draft as its page does."""
    agent = Agent.objects.get(pk=agent.pk)
    for name, value in changes.items():
        setattr(agent, name, value)
    with act_as(who):
        save_agent(agent, uses=uses, instructions=words)


def entries(action="changed"):
    """Return what is said of agents and their own prompts, the oldest first."""
    rows = AuditEntry.objects.filter(action=action, noun__in=["agent", "prompt"])
    return list(rows.order_by("pk"))


def pause():
    """Let the last save be long ago."""
    ago = timezone.now() - SESSION_IDLE_TIMEOUT - timedelta(seconds=1)
    EditSession.objects.update(last_at=ago)


def test_many_saves_are_one_entry_when_the_draft_is_published():
    agent = make_agent(name="Planner", executor={"max_iterations": 5})
    for length in range(1, 9):
        save(agent, agent.owner, words="Be brief"[:length], name="Plans"[:length])
    assert entries() == []

    with act_as(agent.owner):
        publish_agent(Agent.objects.get(), by=agent.owner)

    [entry] = entries()
    assert (entry.by, entry.way, entry.thing) == (str(agent.owner), "page", "Plans")
    assert entry.changes["name"] == ["Planner", "Plans"]
    assert entry.changes["instructions"] == ["", "Be brief"]
    assert set(entry.changes) == {"name", "instructions", "prompt"}
    published = AuditEntry.objects.get(action="published")
    assert entry.pk < published.pk


def test_a_pause_ends_an_edit_session_and_the_sweeper_records_it():
    agent = make_agent(model="small")
    save(agent, agent.owner, model="large")
    end_idle_edit_sessions()
    assert entries() == []

    pause()
    end_idle_edit_sessions()
    end_idle_edit_sessions()

    [entry] = entries()
    assert (entry.by, entry.changes) == (
        str(agent.owner),
        {"model": ["small", "large"]},
    )
    assert "UTC" in entry.note


def test_a_save_after_a_pause_is_an_edit_session_of_its_own():
    agent = make_agent(model="a")
    save(agent, agent.owner, model="b")
    pause()
    save(agent, agent.owner, model="c")
    pause()
    end_idle_edit_sessions()

    assert [one.changes["model"] for one in entries()] == [["a", "b"], ["b", "c"]]


def test_each_person_answers_for_what_they_typed():
    agent, bob = make_agent(model="a"), make_user("bob")
    save(agent, agent.owner, model="b")
    save(agent, bob, model="c")
    save(agent, agent.owner, model="d")
    pause()
    end_idle_edit_sessions()

    message = [(one.by, one.changes["model"]) for one in entries()]
    ann = str(agent.owner)
    assert message == [(ann, ["a", "b"]), ("bob", ["b", "c"]), (ann, ["c", "d"])]


def test_who_may_use_it_and_what_tools_may_is_shown_at_once():
    agent, tool = make_agent(), make_tool()
    save(
        agent, agent.owner, visibility="everyone", uses=[ToolAssignment(tool.pk, "ask")]
    )

    [entry] = entries()
    assert entry.changes == {"visibility": ["private", "everyone"]}
    use = AuditEntry.objects.get(noun="agent tool")
    assert (use.action, use.changes["policy"]) == ("made", [None, "ask"])


def test_another_way_of_changing_a_draft_ends_the_edit_session_first():
    agent = make_agent(name="Planner")
    save(agent, agent.owner, name="Plans")

    with act_as(make_user("bob")):
        archive_definition(Agent.objects.get())

    assert [one.changes for one in entries()] == [{"name": ["Planner", "Plans"]}]
    assert entries("archived")[0].by == "bob"
    assert entries("archived")[0].pk > entries()[0].pk


def test_a_restored_version_is_distinguished_from_what_was_typed_before():
    agent = make_agent(model="a")
    version = publish_agent(agent, by=agent.owner)
    save(agent, agent.owner, model="b", words="Be brief.")

    with act_as(make_user("bob")):
        restore_version(version, by=agent.owner)

    first, second = (one for one in entries() if "model" in one.changes)
    assert (first.by, first.changes["model"]) == (str(agent.owner), ["a", "b"])
    assert first.changes["instructions"] == ["", "Be brief."]
    assert (second.by, second.changes["model"]) == ("bob", ["b", "a"])


def test_instructions_changed_elsewhere_are_reported_under_that_name():
    agent = make_agent()
    save(agent, agent.owner, words="One.")
    save(agent, agent.owner, words="Two.")

    with act_as(make_user("bob")):
        prompt = PromptTemplate.objects.get()
        prompt.messages = [{"role": "system", "template": "Three."}]
        prompt.save()

    spell, direct = entries()
    assert (spell.by, spell.changes["instructions"]) == (
        str(agent.owner),
        ["", "Two."],
    )
    assert (direct.by, direct.noun) == ("bob", "prompt")


def test_what_was_typed_and_taken_back_is_nothing():
    agent = make_agent(model="a")
    save(agent, agent.owner, model="b")
    save(agent, agent.owner, model="a")
    pause()
    end_idle_edit_sessions()

    assert entries() == []
    assert not EditSession.objects.exists()


def test_a_save_that_changes_nothing_begins_no_edit_session():
    agent = make_agent()
    save(agent, agent.owner)

    assert not EditSession.objects.exists()


def test_the_person_is_named_though_gone_by_then():
    agent, bob = make_agent(model="a"), make_user("bob")
    save(agent, bob, model="b")
    number = bob.pk
    bob.delete()
    pause()
    end_idle_edit_sessions()

    assert (entries()[0].by, entries()[0].by_number) == ("bob", number)


def test_what_a_command_saves_is_shown_at_once():
    agent = make_agent(model="a")
    agent.model = "b"
    save_agent(agent, uses=[], instructions=None)

    assert entries()[0].changes == {"model": ["a", "b"]}


def test_a_deleted_agent_leaves_what_was_typed_in_the_log():
    agent = make_agent(name="a")
    save(agent, agent.owner, name="b")

    Agent.objects.get().delete()

    assert [one.changes for one in entries()] == [{"name": ["a", "b"]}]


def test_a_long_text_is_kept_where_it_differs():
    agent = make_agent()
    save(agent, agent.owner, words="x" * 900)
    pause()
    end_idle_edit_sessions()
    save(agent, agent.owner, words="x" * 900 + "!")
    pause()
    end_idle_edit_sessions()

    before, after = entries()[-1].changes["instructions"]
    assert after.endswith("!")
    assert max(len(before), len(after)) < 200
