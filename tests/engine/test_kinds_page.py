"""The page on kinds says what the code does."""

import re
from pathlib import Path

import pytest

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, Reply
from tests.engine.make import make_tool

PAGE = (Path(__file__).parents[2] / "docs" / "kinds.md").read_text(encoding="utf-8")
NAMES = PAGE.split("\n## Names you may know\n")[1]
CLASSIC = """
zero-shot-react-description chat-zero-shot-react-description react-docstore
structured-chat-zero-shot-react-description conversational-react-description
chat-conversational-react-description self-ask-with-search openai-functions openai-tools
create_react_agent create_tool_calling_agent create_xml_agent create_json_chat_agent
create_structured_chat_agent create_self_ask_with_search_agent
"""


@pytest.mark.parametrize("kind", sorted(AGENT_KINDS))
def test_every_kind_has_its_section(kind):
    assert f"\n## {kind}\n" in PAGE


@pytest.mark.parametrize("name", CLASSIC.split())
def test_every_classic_name_leads_to_a_kind(name):
    row = next(r for r in NAMES.splitlines() if r.startswith("|") and f"`{name}`" in r)
    kind = re.findall(r"`([^`]+)`", row)[-1]

    assert kind in AGENT_KINDS


@pytest.mark.parametrize(
    "kind", ["react", "self-ask", "react-docstore", "xml", "conversational"]
)
def test_the_end_of_an_example_ends_a_run(kind):
    example = PAGE.split(f"\n## {kind}\n")[1].split("```")[1]
    last = example.strip().splitlines()[-1]
    made = AGENT_KINDS[kind]

    decision = made.parse_reply(
        made.tidy(last), Reply(text=last), Toolbox([make_tool()])
    )

    assert isinstance(decision, AgentFinish)
    assert decision.return_values["output"]
