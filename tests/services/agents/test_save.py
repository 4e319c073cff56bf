"""Saving an agent with tools and instructions."""

import pytest
from django.db import IntegrityError

from runs.engine.kinds.registry import AGENT_KINDS
from runs.models import Agent, PromptTemplate
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.spec.inline_prompt import (
    build_prompt_with_instructions,
    extract_instructions,
    get_prompt_fields,
)
from tests.make import make_agent, make_prompt, make_tool, make_user

pytestmark = pytest.mark.django_db


def test_tools_are_added_changed_and_taken_away():
    ann = make_user()
    kept, gone, new = make_tool(ann), make_tool(ann), make_tool(ann)
    agent = make_agent(ann, tools=(kept, gone))

    save_agent(
        agent,
        uses=[ToolAssignment(new.pk, "ask"), ToolAssignment(kept.pk, "deny")],
        instructions="",
    )

    found = [(use.tool, use.policy) for use in agent.uses.all()]
    assert found == [(new, "ask"), (kept, "deny")]


def test_saving_instructions_twice_keeps_one_prompt():
    agent = make_agent()

    save_agent(agent, uses=[], instructions="One.")
    save_agent(agent, uses=[], instructions="Two.")

    assert PromptTemplate.objects.get().messages[0]["template"] == "Two."


def test_a_chosen_template_is_never_written_to():
    prompt = make_prompt()
    agent = make_agent(prompt.owner, prompt=prompt)

    save_agent(agent, uses=[], instructions="Mine.")

    assert Agent.objects.get().prompt != prompt
    assert PromptTemplate.objects.get(pk=prompt.pk).messages == prompt.messages


def test_nothing_is_saved_where_a_part_fails():
    agent, tool = make_agent(name="before"), make_tool()
    agent.name = "after"
    no_policy = ToolAssignment(tool.pk, None)  # type: ignore[arg-type]  # to break it

    with pytest.raises(IntegrityError):
        save_agent(agent, uses=[no_policy], instructions="x")

    assert Agent.objects.get().name == "before"
    assert not PromptTemplate.objects.exists()


@pytest.mark.parametrize("kind", list(AGENT_KINDS))
def test_instructions_come_back_as_they_were_written(kind):
    spec = build_prompt_with_instructions(
        AGENT_KINDS[kind], "Answer in rhymes.\nAlways."
    )
    row = PromptTemplate(kind=kind, **get_prompt_fields(spec))

    assert extract_instructions(row) == "Answer in rhymes.\nAlways."


@pytest.mark.parametrize("kind", list(AGENT_KINDS))
def test_the_format_of_a_text_kind_is_kept(kind):
    own = AGENT_KINDS[kind].prompt

    spec = build_prompt_with_instructions(AGENT_KINDS[kind], "Be kind.")

    assert build_prompt_with_instructions(AGENT_KINDS[kind], "") == own
    if not AGENT_KINDS[kind].needs_functions:
        assert all(
            text in "".join(str(part) for part in get_prompt_fields(spec).values())
            for text in ("Be kind.",)
        )
