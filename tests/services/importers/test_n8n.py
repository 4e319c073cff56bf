"""n8n: AI agent nodes."""

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

PACKAGE = "@n8n/n8n-nodes-langchain"


def node(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    package = "n8n-nodes-base" if kind in ("webhook", "stickyNote") else PACKAGE
    return {"name": name, "type": f"{package}.{kind}", "parameters": parameters}


def workflow(*nodes: dict[str, Any], **connections: str) -> dict[str, Any]:
    """Return a workflow whose nodes are connected to `Helper` as named."""
    return {
        "name": "Mail desk",
        "nodes": list(nodes),
        "connections": {
            source.replace("_", " "): {
                kind: [[{"node": "Helper", "type": kind, "index": 0}]]
            }
            for source, kind in connections.items()
        },
    }


HELPER = node(
    "Helper",
    "agent",
    promptType="define",
    text="={{ $json.chatInput }}",
    options={
        "systemMessage": "=You help {{ $json.user.name }}. Use {}.",
        "maxIterations": 4,
    },
)
MODEL = node(
    "Model",
    "lmChatOpenAi",
    model={"__rl": True, "mode": "list", "value": "gpt-4o"},
    options={"temperature": 0.1, "maxTokens": -1},
)


def test_an_agent_node_becomes_an_agent_with_its_model_and_memory():
    found = convert(
        workflow(
            HELPER,
            MODEL,
            node("Memory", "memoryBufferWindow"),
            node("Note", "stickyNote"),
            Model="ai_languageModel",
            Memory="ai_memory",
        )
    )

    agent = get_agent(found)
    assert (agent.name, agent.provider, agent.model) == ("Helper", "openai", "gpt-4o")
    assert agent.parameters == {"temperature": 0.1}
    assert (agent.executor.max_iterations, agent.memory) == (4, True)
    assert get_messages(found) == [
        ("system", "You help {user_name}. Use {{}}."),
        ("user", "{input}"),
    ]
    assert list(get_skipped(found)) == ["Setting “Helper: {{ $json.user.name }}”"]


def test_an_unnamed_agent_has_the_name_of_its_workflow():
    given = workflow({**HELPER, "name": "AI Agent"}, MODEL)

    assert get_agent(convert(given)).name == "Mail desk"


def test_a_request_with_placeholders_becomes_an_http_tool():
    request = node(
        "Find order",
        "toolHttpRequest",
        toolDescription="Finds an order",
        url="https://shop.example.com/orders/{number}",
        sendQuery=True,
        parametersQuery={
            "values": [{"name": "lang", "valueProvider": "modelRequired"}]
        },
        placeholderDefinitions={
            "values": [
                {"name": "number", "type": "number", "description": "Its number"}
            ]
        },
    )

    found = convert(workflow(HELPER, MODEL, request, Find_order="ai_tool"))

    (tool,) = found.file.tools
    assert (tool.kind, tool.effect, tool.name) == ("http", "read", "Find_order")
    assert tool.config == {
        "url": "https://shop.example.com/orders/{number}",
        "method": "GET",
        "query": {"lang": "{lang}"},
    }
    assert tool.args_schema == {
        "type": "object",
        "properties": {
            "number": {"type": "number", "description": "Its number"},
            "lang": {"type": "string"},
        },
        "required": ["lang", "number"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("kind", [["number"], "date", None], ids=repr)
def test_a_placeholder_of_an_unknown_type_is_a_text(kind):
    request = node(
        "Find",
        "toolHttpRequest",
        url="https://shop.example.com/{number}",
        placeholderDefinitions={"values": [{"name": "number", "type": kind}]},
    )

    (tool,) = convert(workflow(HELPER, MODEL, request, Find="ai_tool")).file.tools

    assert (tool.args_schema or {})["properties"] == {"number": {"type": "string"}}


def test_what_the_model_fills_in_becomes_an_argument():
    request = node(
        "Send",
        "httpRequestTool",
        method="POST",
        url="https://hooks.example.com/in",
        sendBody=True,
        bodyParameters={
            "parameters": [
                {
                    "name": "text",
                    "value": "={{ $fromAI('message', `What to say`, 'string') }}",
                }
            ]
        },
    )

    found = convert(workflow(HELPER, MODEL, request, Send="ai_tool"))

    (tool,) = found.file.tools
    assert tool.config["json"] == {"text": "{message}"}
    assert tool.effect == "side_effect"
    assert (tool.args_schema or {})["properties"] == {
        "message": {"type": "string", "description": "What to say"}
    }


def test_a_typed_key_is_not_imported():
    request = node(
        "Find",
        "toolHttpRequest",
        url="https://shop.example.com/",
        sendHeaders=True,
        parametersHeaders={
            "values": [{"name": "X-Api-Key", "value": "sk-verysecretvalue1234567890"}]
        },
    )

    found = convert(workflow(HELPER, MODEL, request, Find="ai_tool"))

    assert "verysecret" not in found.text


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        pytest.param(
            node("T", "toolHttpRequest", url="={{ $json.url }}"),
            "expressions",
            id="url",
        ),
        pytest.param(
            node("T", "toolHttpRequest", url="/orders"), "does not begin", id="relative"
        ),
        pytest.param(
            node("T", "toolHttpRequest", url="https://{host}/"),
            "host cannot come from an argument",
            id="host",
        ),
        pytest.param(node("T", "toolCode", jsCode="1"), "not Python", id="code"),
        pytest.param(node("T", "toolWorkflow"), "another n8n workflow", id="workflow"),
        pytest.param(
            node("T", "mcpClientTool", endpointUrl="https://m.example.com/mcp"),
            "Add the MCP server https://m.example.com/mcp",
            id="mcp",
        ),
        pytest.param(
            node("T", "mcpClientTool", sseEndpoint="={{ $env.MCP }}/sse"),
            "Add the MCP server under Tools",
            id="mcp-expression",
        ),
        pytest.param(node("T", "toolVectorStore"), "No such tool", id="other"),
    ],
)
def test_a_tool_that_cannot_be_imported_is_listed_with_the_reason(tool, reason):
    found = convert(workflow(HELPER, MODEL, tool, T="ai_tool"))

    (said,) = [why for part, why in found.skipped if part.startswith("Tool")]
    assert reason in said
    assert found.file.tools == ()


def test_the_schema_of_an_output_parser_is_the_output_of_the_agent():
    parser = node("Parser", "outputParserStructured", inputSchema='{"type": "object"}')

    found = convert(workflow(HELPER, MODEL, parser, Parser="ai_outputParser"))

    assert get_agent(found).executor.output_schema == {"type": "object"}


def test_agents_that_call_one_another_lose_the_call_that_closes_the_circle():
    given = workflow(HELPER, node("Other", "agentTool", text="={{ $fromAI('q') }}"))
    given["connections"] = {
        "Other": {"ai_tool": [[{"node": "Helper"}]]},
        "Helper": {"ai_tool": [[{"node": "Other"}]]},
    }
    given["nodes"][0]["type"] = f"{PACKAGE}.agentTool"

    found = convert(given)

    calls = [use.agent for agent in found.file.agents for use in agent.tools]
    assert len(calls) == 1
    assert any("call itself" in reason for reason in get_skipped(found).values())


def test_other_nodes_and_disabled_ones_are_listed():
    given = workflow(HELPER, {**MODEL, "disabled": True}, node("Hook", "webhook"))
    given["connections"] = {"Model": {"ai_languageModel": [[{"node": "Helper"}]]}}

    skipped = get_skipped(convert(given))

    assert skipped["Node “Model”"] == "Disabled in the file."
    assert "Node “Hook” (webhook)" in skipped


def test_connections_to_missing_nodes_do_no_harm():
    given = workflow(HELPER, MODEL, Ghost="ai_tool")
    given["connections"]["Model"] = {"ai_languageModel": [[{"node": None}], "x", None]}

    assert get_agent(convert(given)).model == "qwen3"


def test_values_of_different_nodes_are_different_variables():
    helper = node(
        "Helper",
        "agent",
        text="=Reply to {{ $('Mail').item.json.text }} as {{ $json.role }}",
        options={
            "systemMessage": "={{ $json.role }}: {{ $('Rules').item.json.text }}",
        },
    )

    found = convert(workflow(helper, MODEL))

    assert get_messages(found) == [
        ("system", "{role}: {text}"),
        ("user", "Reply to {text_2} as {role}"),
    ]
    assert (
        "{text_2}"
        in get_skipped(found)["Setting “Helper: {{ $('Mail').item.json.text }}”"]
    )


def test_a_list_with_one_workflow_is_that_workflow():
    assert get_agent(convert([workflow(HELPER, MODEL)])).name == "Helper"


def test_a_workflow_without_an_agent_is_recognized_by_name():
    with pytest.raises(ForeignFileRefused, match="an n8n workflow without an AI Agent"):
        convert(workflow(node("Hook", "webhook")))
