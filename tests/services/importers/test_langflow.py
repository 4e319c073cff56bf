"""Langflow: agent components."""

from typing import Any

import pytest

from runs.services.importers.errors import ForeignFileRefused
from tests.services.importers.convert import (
    convert,
    get_agent,
    get_messages,
    get_skipped,
)

pytestmark = pytest.mark.django_db


def component(key: str, kind: str, **values: Any) -> dict[str, Any]:
    template = {name: {"value": value} for name, value in values.items()}
    node = {"display_name": kind, "template": {**template, "_type": "Component"}}
    return {"id": key, "data": {"id": key, "type": kind, "node": node}}


def flow(
    *nodes: dict[str, Any], edges: tuple[tuple[str, str, str], ...] = ()
) -> dict[str, Any]:
    """Return a flow; an edge has its source, its target and the target's field."""
    return {
        "name": "Desk",
        "data": {
            "nodes": list(nodes),
            "edges": [
                {
                    "source": a,
                    "target": b,
                    "data": {"targetHandle": {"fieldName": field}},
                }
                for a, b, field in edges
            ],
        },
    }


AGENT = component(
    "A",
    "Agent",
    agent_llm="OpenAI",
    model_name="gpt-4.1",
    temperature=0.1,
    system_prompt="Be kind. {x}",
    max_iterations=9,
    add_current_date_tool=True,
)


def test_an_agent_component_becomes_an_agent():
    found = convert(
        flow(
            AGENT,
            component("I", "ChatInput"),
            component("C", "CalculatorComponent"),
            component("Y", "YfinanceComponent"),
            component("N", "note"),
            component("S", "SplitText"),
            edges=(
                ("I", "A", "input_value"),
                ("C", "A", "tools"),
                ("Y", "A", "tools"),
                ("gone", "A", "tools"),
            ),
        )
    )

    agent = get_agent(found)
    assert (agent.name, agent.provider, agent.model) == ("Desk", "openai", "gpt-4.1")
    assert agent.parameters == {"temperature": 0.1}
    assert agent.executor.max_iterations == 9
    assert [use.tool for use in agent.tools] == ["calculator", "clock"]
    assert get_messages(found) == [("system", "Be kind. {{x}}"), ("user", "{input}")]
    assert list(get_skipped(found)) == [
        "Tool “YfinanceComponent” (YfinanceComponent)",
        "Node “SplitText” (SplitText)",
    ]


def test_a_prompt_component_is_the_instructions():
    prompt = component("P", "Prompt", template="Answer {q} as {{}} for {who}.")

    found = convert(
        flow(
            AGENT,
            prompt,
            component("I", "ChatInput"),
            edges=(("P", "A", "system_prompt"), ("I", "P", "q")),
        )
    )

    assert get_messages(found)[0] == ("system", "Answer {input} as {{}} for {who}.")
    assert list(get_skipped(found)) == ["Setting “Prompt: {who}”"]


def test_components_in_a_circle_do_no_harm():
    prompt = component("P", "Prompt", template="{a}")
    edges = (("P", "A", "system_prompt"), ("A", "P", "a"), ("A", "A", "tools"))

    found = convert(flow(AGENT, prompt, edges=edges))

    assert [use.agent for use in get_agent(found).tools if use.agent] == []


def test_a_selected_model_of_newer_versions_is_found():
    chosen = [{"name": "claude-sonnet-4-5", "provider": "Anthropic"}]

    agent = get_agent(convert(flow(component("A", "Agent", model=chosen))))

    assert (agent.provider, agent.model) == ("anthropic", "claude-sonnet-4-5")


def test_a_flow_without_an_agent_is_recognized_by_name():
    with pytest.raises(ForeignFileRefused, match="a Langflow flow without an Agent"):
        convert(flow(component("I", "ChatInput")))
