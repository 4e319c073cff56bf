"""OpenAI Agent Builder: exported code, which is parsed and never run."""

import pytest

from runs.services.importers.errors import ForeignFileRefused
from tests.services.importers.convert import (
    convert,
    get_agent,
    get_messages,
    get_skipped,
)

pytestmark = pytest.mark.django_db

PYTHON = """
from agents import Agent, FileSearchTool, HostedMCPTool, ModelSettings, WebSearchTool
from openai.types.shared.reasoning import Reasoning

search = WebSearchTool(search_context_size="medium")
files = FileSearchTool(vector_store_ids=["vs_1"])
mcp = HostedMCPTool(tool_config={"type": "mcp", "server_url": "https://m.example.com"})

def say(context, agent):
    name = context.context.name
    return f"Greet {name}. Use {{}}."

desk = Agent(
    name="Front desk",
    instructions=say,
    model="gpt-5",
    tools=[search, files, mcp, unknown],
    output_type=Answer,
    model_settings=ModelSettings(temperature=0.5, reasoning=Reasoning(effort="low")),
)
open("/tmp/never", "w")
"""
TYPESCRIPT = r"""
import { webSearchTool, hostedMcpTool, Agent, Runner } from "@openai/agents";
// Tool definitions
const search = webSearchTool({
  searchContextSize: "medium",
  userLocation: { city: undefined },
});
const mcp = hostedMcpTool({ serverLabel: "m", serverUrl: "https://m.example.com" });
const Answer = z.object({ category: z.enum(["a", "b"]).optional() });
const sayHello = (runContext: RunContext<Ctx>, _agent: Agent<Ctx>) => {
  const { city } = runContext.context;
  return `Greet ${city}.`
}
const desk = new Agent({
  name: "Front \"desk\"",
  instructions: `Say \`hi\` to ${workflow.input_as_text} {x}.`,
  model: process.env.MODEL || "gpt-5",
  tools: [search, mcp],
  outputType: Answer,
  modelSettings: { temperature: 1, maxTokens: 2048, store: true },
});
const second = new Agent({ name: 'Second', instructions: sayHello, model: "gpt-4.1" });
export const runWorkflow = async (workflow: WorkflowInput) => { return { a: 1 } };
"""


def test_an_agent_in_python_becomes_an_agent():
    found = convert(PYTHON)

    agent = get_agent(found)
    assert (found.product, agent.name) == ("OpenAI Agent Builder", "Front desk")
    assert (agent.provider, agent.model) == ("openai", "gpt-5")
    assert agent.parameters == {"temperature": 0.5}
    assert [use.tool for use in agent.tools] == ["web_search"]
    assert get_messages(found)[0] == ("system", "Greet {name}. Use {{}}.")
    assert list(get_skipped(found)) == [
        "Setting “Front desk: output_type”",
        "Setting “Front desk: reasoning”",
        "Setting “Front desk: name”",
        "Knowledge base “vs_1”",
        "Tool “HostedMCPTool” (Front desk)",
        "Tool “unknown” (Front desk)",
    ]


def test_agents_in_typescript_become_agents():
    found = convert(TYPESCRIPT)

    desk, second = found.file.agents
    assert (desk.name, desk.model, desk.provider) == ('Front "desk"', "qwen3", "local")
    assert desk.parameters == {"temperature": 1, "max_tokens": 2048}
    assert [use.tool for use in desk.tools] == ["web_search"]
    assert (second.name, second.model) == ("Second", "gpt-4.1")
    assert get_messages(found, "front-desk-instructions")[0] == (
        "system",
        "Say `hi` to {input} {{x}}.",
    )
    assert get_messages(found, "second-instructions")[0] == ("system", "Greet {city}.")
    skipped = get_skipped(found)
    assert "https://m.example.com" in skipped['Tool “hostedMcpTool” (Front "desk")']
    assert "Setting “runWorkflow”" in skipped


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from agents import Agent\nx = (", "not valid Python: see line 2"),
        ("from agents import Agent\n" + "x = " + "(" * 5_000, "not valid Python"),
        ("from agents import Agent\nx = 1", "assigns no agent to a name"),
        ("import { Agent } from '@openai/agents'\nconst a = [[[", "assigns no agent"),
        ("import os\n", "This code has no agent of the OpenAI Agents SDK"),
        (
            "import '@openai/agents'\nconst a = " + "new Agent({a: [" * 2_000,
            "assigns no agent",
        ),
    ],
    ids=["syntax", "depth", "none", "open", "other", "nested"],
)
def test_code_without_agents_is_refused_with_a_reason(text, message):
    with pytest.raises(ForeignFileRefused, match=message):
        convert(text)
