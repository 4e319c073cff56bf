"""Putting a published version back into the draft."""

import pytest

from runs.models import Agent, PromptTemplate
from runs.services.agents.publish import publish_agent
from runs.services.agents.restore_version import restore_version
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.spec.definition import build_agent_definition
from runs.services.spec.inline_prompt import extract_instructions
from tests.make import (
    make_agent,
    make_prompt,
    make_provider,
    make_tool,
    make_user,
    make_version,
)

pytestmark = pytest.mark.django_db


def published(**fields):
    """Return an agent with instructions and a tool, and its version."""
    agent = make_agent(**fields)
    tool = make_tool(agent.owner)
    save_agent(agent, uses=[ToolAssignment(tool.pk, "ask")], instructions="Be brief.")
    return agent, publish_agent(agent, by=agent.owner)


def changed(agent):
    """Change everything about the draft."""
    agent.model, agent.parameters = "model-b", {"temperature": 1}
    agent.executor, agent.memory, agent.kind = {"max_iterations": 3}, True, "react"
    agent.suggested_questions = ["Another?"]
    save_agent(agent, uses=[], instructions="Be long.")
    return Agent.objects.get(pk=agent.pk)


def test_everything_is_as_it_was():
    agent, version = published(
        parameters={"seed": 7},
        description="Old words.",
        suggested_questions=["Old?"],
    )
    assert build_agent_definition(agent).suggested_questions == ("Old?",)
    before = build_agent_definition(agent)
    changed(agent)

    said = restore_version(version, by=agent.owner)

    assert said == []
    assert build_agent_definition(Agent.objects.get(pk=agent.pk)) == before


def test_restoring_twice_is_the_same_as_once():
    agent, version = published()
    changed(agent)

    restore_version(version, by=agent.owner)
    restore_version(version, by=agent.owner)

    assert agent.uses.count() == 1
    assert agent.versions.count() == 1
    restored = Agent.objects.get(pk=agent.pk)
    assert extract_instructions(restored.prompt) == "Be brief."


def test_a_prompt_of_the_library_is_used_again_while_it_is_the_same():
    prompt = make_prompt()
    agent = make_agent(prompt.owner, prompt=prompt)
    version = publish_agent(agent, by=agent.owner)
    changed(agent)

    restore_version(version, by=agent.owner)

    assert Agent.objects.get(pk=agent.pk).prompt == prompt


def test_a_prompt_that_was_changed_since_comes_back_in_its_words_of_then():
    prompt = make_prompt(template="Then: {input} {agent_scratchpad}", kind="react")
    agent = make_agent(prompt.owner, prompt=prompt, kind="react")
    version = publish_agent(agent, by=agent.owner)
    PromptTemplate.objects.update(template="Now: {input} {agent_scratchpad}")

    (said,) = restore_version(version, by=agent.owner)

    kept = Agent.objects.get(pk=agent.pk).prompt
    assert kept.template == "Then: {input} {agent_scratchpad}"
    assert kept.name in said


def test_what_may_not_be_used_any_more_is_left_out_and_named():
    ann, ben = make_user(), make_user()
    theirs = make_tool(ben, name="their_tool", visibility="everyone")
    provider = make_provider(ben, visibility="everyone")
    agent = make_agent(ann, tools=(theirs,), provider=provider)
    version = publish_agent(agent, by=ann)
    agent.provider = make_provider(ann)
    save_agent(agent, uses=[], instructions="")
    type(theirs).objects.update(visibility="private")
    type(provider).objects.filter(pk=provider.pk).update(visibility="private")

    said = restore_version(version, by=ann)

    restored = Agent.objects.get(pk=agent.pk)
    assert restored.provider == agent.provider
    assert not restored.uses.exists()
    assert any("their_tool" in one for one in said)
    assert any("provider" in one for one in said)


def test_an_agent_that_would_call_itself_now_is_left_out():
    ann = make_user()
    helper = make_agent(ann, name="helper")
    agent = make_agent(ann)
    save_agent(agent, uses=[ToolAssignment(None, "allow", helper.pk)], instructions="")
    version = publish_agent(agent, by=ann)
    save_agent(agent, uses=[], instructions="")
    save_agent(helper, uses=[ToolAssignment(None, "allow", agent.pk)], instructions="")

    (said,) = restore_version(version, by=ann)

    assert "helper" in said
    assert not agent.uses.exists()


def test_a_version_of_before_definitions_were_kept_is_read_from_its_spec():
    agent = make_agent(kind="react")
    version = make_version(agent)
    changed(agent)

    restore_version(version, by=agent.owner)

    restored = Agent.objects.get(pk=agent.pk)
    assert (restored.kind, restored.model) == ("react", "model-a")
    assert restored.prompt is None
