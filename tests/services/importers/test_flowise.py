"""Flowise: agents of chatflows, teams and agentflows."""

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


def flow(**nodes: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a flow of nodes, each with its name and its inputs."""
    return {
        "nodes": [
            {
                "id": key,
                "data": {"id": key, "name": name, "label": key, "inputs": inputs},
            }
            for key, (name, inputs) in nodes.items()
        ],
        "edges": [],
    }


def ref(key: str) -> str:
    return f"{{{{{key}.data.instance}}}}"


MODEL = ("chatAnthropic", {"modelName": "claude-sonnet-4-5", "temperature": "0.5"})


def test_a_tool_agent_becomes_an_agent():
    found = convert(
        flow(
            Desk=(
                "toolAgent",
                {
                    "systemMessage": "Answer {{question}} as JSON: {}",
                    "model": ref("m"),
                    "memory": ref("b"),
                    "tools": [ref("c"), ref("w"), ref("gone")],
                    "maxIterations": "3",
                },
            ),
            m=MODEL,
            b=("bufferMemory", {}),
            c=("calculator", {}),
            w=("gmail", {}),
            note=("stickyNote", {"note": "x"}),
            chain=("llmChain", {}),
        )
    )

    agent = get_agent(found)
    assert (agent.name, agent.provider) == ("Desk", "anthropic")
    assert (agent.model, agent.parameters) == (
        "claude-sonnet-4-5",
        {"temperature": 0.5},
    )
    assert (agent.executor.max_iterations, agent.memory) == (3, True)
    assert get_messages(found)[0] == ("system", "Answer {input} as JSON: {{}}")
    assert list(get_skipped(found)) == ["Tool “w” (gmail)", "Node “chain” (llmchain)"]


def test_agents_that_only_follow_one_another_are_listed_as_separate():
    def agent(**inputs: str) -> tuple[str, dict[str, Any]]:
        return "seqAgent", {"systemMessagePrompt": "Work.", "model": ref("m"), **inputs}

    found = convert(flow(a=agent(), b=agent(sequentialNode=ref("a")), m=MODEL))

    assert get_skipped(found) == {
        "Connections between agents": "The agents are imported one by one. To combine "
        "them, let one agent call the others."
    }


def test_a_supervisor_calls_its_workers():
    found = convert(
        flow(
            s=(
                "supervisor",
                {
                    "supervisorName": "Boss",
                    "supervisorPrompt": "Lead {team_members}.",
                    "model": ref("m"),
                },
            ),
            a=(
                "worker",
                {
                    "workerName": "Writer",
                    "workerPrompt": "Write for {company} about {topic}.",
                    "promptValues": '{"company": "Acme"}',
                    "supervisor": ref("s"),
                },
            ),
            m=MODEL,
        )
    )

    boss, writer = found.file.agents
    assert [use.agent for use in boss.tools] == [writer.slug]
    assert writer.model == "claude-sonnet-4-5"
    assert get_messages(found, "boss-instructions")[0] == ("system", "Lead Writer.")
    assert get_messages(found, "writer-instructions")[0] == (
        "system",
        "Write for Acme about {topic}.",
    )
    assert list(get_skipped(found)) == ["Setting “Writer: {topic}”"]


def test_an_agent_of_an_agentflow_has_everything_in_its_inputs():
    found = convert(
        flow(
            start=("startAgentflow", {}),
            Desk=(
                "agentAgentflow",
                {
                    "agentModel": "chatOpenAI",
                    "agentModelConfig": {"modelName": "gpt-4o", "maxTokens": "100"},
                    "agentMessages": [
                        {
                            "role": "system",
                            "content": "<p>Be <b>kind</b> &amp; short.</p>",
                        }
                    ],
                    "agentUserMessage": "<p>Use {{ $flow.state.plan }}</p>",
                    "agentTools": [
                        {"agentSelectedTool": "currentDateTime"},
                        {
                            "agentSelectedTool": "customMCP",
                            "agentSelectedToolConfig": {
                                "mcpServerConfig": '{"url": "https://m.example.com"}'
                            },
                        },
                    ],
                    "agentKnowledgeDocumentStores": [{"documentStore": "7:Books"}],
                    "agentEnableMemory": True,
                },
            ),
        )
    )

    agent = get_agent(found)
    assert (agent.provider, agent.model, agent.memory) == ("openai", "gpt-4o", True)
    assert [use.tool for use in agent.tools] == ["clock"]
    assert get_messages(found) == [
        ("system", "Be kind & short."),
        ("user", "Use {flow_state_plan}\n\n{input}"),
    ]
    skipped = get_skipped(found)
    assert (
        "Add the MCP server https://m.example.com"
        in skipped["Tool “customMCP” (custommcp)"]
    )
    assert "Knowledge base “Books”" in skipped


def test_a_server_of_its_own_becomes_a_provider():
    model = ("chatOpenAI", {"modelName": "m", "basepath": "https://llm.example.com/v1"})

    found = convert(flow(Desk=("toolAgent", {"model": ref("m")}), m=model))

    (provider,) = found.file.providers
    assert provider.base_url == "https://llm.example.com/v1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (flow(c=("llmChain", {})), "a Flowise flow without an agent node"),
        ({"name": "x", "schema": "[]", "func": "return 1"}, "This is a Flowise tool"),
    ],
)
def test_other_files_are_recognized_by_name(given, message):
    with pytest.raises(ForeignFileRefused, match=message):
        convert(given)
