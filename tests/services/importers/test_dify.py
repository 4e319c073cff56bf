"""Dify: agent and chat apps."""

import pytest

from runs.services.importers.errors import ForeignFileRefused
from tests.services.importers.convert import (
    convert,
    get_agent,
    get_messages,
    get_skipped,
)

pytestmark = pytest.mark.django_db

AGENT_APP = """
version: 0.3.0
kind: app
app: {name: Trip helper, mode: agent-chat, description: Plans trips}
model_config:
  pre_prompt: 'Plan a trip to {{city}}. Answer as {"days": 3}. {{#context#}}'
  prompt_type: simple
  model:
    provider: langgenius/openai/openai
    name: gpt-4o-mini
    completion_params: {temperature: 0.2, max_tokens: 512, stop: []}
  agent_mode:
    enabled: true
    max_iteration: 7
    strategy: function_call
    tools:
      - {enabled: true, provider_name: maths, tool_name: calculator, tool_label: Sums}
      - {enabled: true, provider_name: dalle, tool_name: dalle3, tool_label: Pictures}
      - {enabled: false, provider_name: time, tool_name: current_time, tool_label: Now}
  opening_statement: Where do you want to go?
  suggested_questions: [Where is it warm?, '']
  user_input_form:
    - text-input: {variable: city, label: City, required: true, default: Rome}
    - select: {variable: style, label: Style, options: [short, long]}
  dataset_configs: {datasets: {datasets: [{dataset: {id: places, enabled: true}}]}}
  text_to_speech: {enabled: true}
  more_like_this: {enabled: false}
"""


def test_an_agent_app_becomes_an_agent():
    found = convert(AGENT_APP)

    agent = get_agent(found)
    assert (found.product, agent.slug, agent.name) == (
        "Dify",
        "trip-helper",
        "Trip helper",
    )
    assert (agent.provider, agent.model) == ("openai", "gpt-4o-mini")
    assert agent.parameters == {"temperature": 0.2, "max_tokens": 512}
    assert agent.executor.max_iterations == 7
    assert agent.suggested_questions == ("Where is it warm?",)
    assert [use.tool for use in agent.tools] == ["calculator"]
    assert agent.memory


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("mcp", "Add the MCP server desk under Tools, and select its tools."),
        ("api", "Import the OpenAPI document under Tools."),
        ("workflow", "No such tool here. Add an HTTP, OpenAPI or MCP tool instead."),
    ],
)
def test_a_tool_of_a_provider_is_listed_with_how_to_add_it(kind, reason):
    tool = f"{{provider_type: {kind}, provider_name: desk, tool_name: lookup}}"
    given = (
        "app: {name: Sums, mode: agent-chat}\nkind: app\n"
        f"model_config: {{agent_mode: {{tools: [{tool}]}}}}"
    )

    assert get_skipped(convert(given))["Tool “lookup” (desk)"] == reason


def test_variables_keep_their_names_and_other_braces_are_text():
    assert get_messages(convert(AGENT_APP)) == [
        (
            "system",
            'Plan a trip to {city}. Answer as {{"days": 3}}. {context}',
        ),
        ("user", "{input}"),
    ]


def test_lists_exactly_what_has_no_counterpart():
    assert list(get_skipped(convert(AGENT_APP))) == [
        "Tool “Pictures” (dalle)",
        "Tool “Now” (time)",
        "Setting “{{#context#}}”",
        "Setting “text_to_speech”",
        "Setting “opening_statement”",
        "Knowledge base “places”",
        "Setting “city: default”",
        "Setting “style: options”",
    ]


def test_a_chat_app_becomes_an_agent_without_tools():
    text = AGENT_APP.replace("agent-chat", "chat").replace("  agent_mode:", "  other:")

    agent = get_agent(convert(text))

    assert agent.tools == ()


def test_the_messages_of_an_expert_prompt_keep_their_roles():
    text = AGENT_APP.replace("prompt_type: simple", "prompt_type: advanced").replace(
        "  agent_mode:",
        "  chat_prompt_config: {prompt: [{role: system, text: Be kind}, "
        "{role: user, text: 'Say {{#query#}}'}]}\n  agent_mode:",
    )

    assert get_messages(convert(text)) == [
        ("system", "Be kind"),
        ("user", "Say {input}"),
    ]


@pytest.mark.parametrize(
    ("mode", "title"),
    [
        ("workflow", "workflow"),
        ("advanced-chat", "chatflow"),
        ("completion", "text generator"),
        ("something-new", "something-new"),
    ],
)
def test_other_apps_are_recognized_by_name(mode, title):
    with pytest.raises(ForeignFileRefused) as refused:
        convert(f"app: {{name: X, mode: {mode}}}\nkind: app\nworkflow: {{}}\n")

    assert str(refused.value) == (
        f"This is a Dify {title}; only agent apps and chat apps can be imported."
    )


def test_a_knowledge_pipeline_is_recognized_by_name():
    with pytest.raises(ForeignFileRefused, match="This is a Dify knowledge pipeline"):
        convert("kind: rag_pipeline\nversion: 0.1.0\n")


def test_values_of_the_wrong_type_do_no_harm():
    text = "app: {mode: chat, name: [1]}\nmodel_config: {model: x, agent_mode: 5}"

    agent = get_agent(convert(text))

    assert (agent.slug, agent.provider, agent.model) == ("agent", "local", "qwen3")
