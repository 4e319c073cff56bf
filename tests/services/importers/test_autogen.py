"""AutoGen Studio: assistants of a team."""

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


def component(kind: str, provider: str, **config: Any) -> dict[str, Any]:
    return {
        "component_type": kind,
        "provider": f"autogen.{provider}",
        "label": provider,
        "config": config,
    }


def function(name: str, code: str, **more: Any) -> dict[str, Any]:
    given = {"name": name, "source_code": code, "description": "Does it", **more}
    return component("tool", "FunctionTool", **given)


def assistant(name: str, *tools: dict[str, Any], **config: Any) -> dict[str, Any]:
    model = component(
        "model", "OpenAIChatCompletionClient", model="gpt-4o", api_key="sk-x"
    )
    return component(
        "agent",
        "AssistantAgent",
        name=name,
        model_client=model,
        system_message="Say {x}.",
        tools=list(tools),
        **config,
    )


def team(*participants: dict[str, Any]) -> dict[str, Any]:
    condition = component(
        "termination",
        "OrTerminationCondition",
        conditions=[component("termination", "MaxMessageTermination")],
    )
    return component(
        "team",
        "RoundRobinGroupChat",
        participants=list(participants),
        termination_condition=condition,
    )


def test_each_assistant_of_a_team_becomes_an_agent():
    found = convert(
        team(
            assistant("book_finder", handoffs=["writer"], max_tool_iterations=1),
            assistant("writer"),
            component("agent", "UserProxyAgent", name="me"),
        )
    )

    first, second = found.file.agents
    assert (first.slug, first.name, second.slug) == (
        "book-finder",
        "Book finder",
        "writer",
    )
    assert (first.provider, first.model) == ("openai", "gpt-4o")
    assert first.executor.max_iterations == 15
    assert get_messages(found, "writer-instructions")[0] == ("system", "Say {{x}}.")
    assert list(get_skipped(found)) == [
        "Setting “RoundRobinGroupChat (RoundRobinGroupChat)”",
        "Setting “RoundRobinGroupChat: MaxMessageTermination”",
        "Setting “book_finder: handoff writer”",
        "Setting “api_key”",
        "Agent “me” (UserProxyAgent)",
    ]
    assert "sk-x" not in found.text


def test_a_python_function_becomes_a_python_tool():
    code = "import math\n\ndef area(radius: float, unit='m') -> str:\n    return 'x'\n"

    found = convert(team(assistant("a", function("area", code))))

    (tool,) = found.file.tools
    assert tool.config["code"] == f"{code}\narea(radius=radius, unit=unit)\n"
    assert tool.args_schema == {
        "type": "object",
        "properties": {"radius": {"type": "number"}, "unit": {}},
        "required": ["radius", "unit"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (function("t", "import os\ndef f(): pass"), "Imports os"),
        (
            function("t", "def f(): pass", global_imports=[{"module": "requests"}]),
            "Imports requests",
        ),
        (function("t", "async def f(): pass"), "Asynchronous"),
        (function("t", "def f(*a): pass"), "not a single Python function"),
        (function("t", "def f(:"), "not a single Python function"),
        (component("tool", "HttpTool", name="t"), "No such tool"),
    ],
    ids=["module", "global-import", "async", "arguments", "syntax", "kind"],
)
def test_a_tool_that_cannot_be_imported_is_listed_with_the_reason(tool, reason):
    skipped = get_skipped(convert(team(assistant("a", tool))))

    (said,) = [why for part, why in skipped.items() if part.startswith("Tool")]
    assert reason in said


def test_a_known_function_becomes_the_built_in_tool():
    code = "import os\ndef google_search(q): pass"

    found = convert(team(assistant("a", function("google_search", code))))

    assert [use.tool for use in get_agent(found).tools] == ["web_search"]


def test_tools_of_workbenches_count():
    bench = component(
        "workbench",
        "StaticWorkbench",
        tools=[function("f", "def f(a: int): return a")],
    )
    mcp = component("workbench", "McpWorkbench", server_params={"command": "uvx"})

    found = convert(team(assistant("a", workbench=[bench, mcp])))

    assert [tool.name for tool in found.file.tools] == ["f"]
    assert "Add the MCP server uvx" in get_skipped(found)["Tool “McpWorkbench” (a)"]


def test_a_gallery_gives_each_agent_once():
    one = team(assistant("writer"))

    found = convert({"name": "g", "components": {"teams": [one, one], "agents": []}})

    assert get_agent(found).slug == "writer"


def test_teams_within_teams_end_somewhere():
    inner = team(assistant("writer"))
    for _ in range(20):
        inner = team(inner)

    with pytest.raises(ForeignFileRefused, match="without an AssistantAgent"):
        convert(inner)
