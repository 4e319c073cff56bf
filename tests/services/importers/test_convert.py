"""Files of other products, whichever they are of."""

import json
import time
from contextlib import suppress

import pytest
from django.contrib.auth.models import User

from runs.models import Provider
from runs.services.agentfile.load import import_agentfile
from runs.services.importers.build import AgentFileBuilder
from runs.services.importers.conversion import ConvertedTool
from runs.services.importers.convert import MAX_ATTEMPTS, convert_foreign_file
from runs.services.importers.document import MAX_JSON_CHARS
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.registry import IMPORTERS
from tests.make import make_agent, make_user
from tests.services.importers.convert import convert, get_agent
from tools.models import Tool

pytestmark = pytest.mark.django_db

CREW = """
writer: {role: Writer, goal: Write, backstory: '', llm: openai/gpt-4o}
"""
DIFY = """
app: {name: Sums, mode: agent-chat}
kind: app
model_config:
  pre_prompt: Count.
  model: {provider: openai, name: gpt-4o}
  agent_mode: {tools: [{tool_name: calculator}]}
"""


def get_bomb() -> str:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    return "\n".join(["a0: &a0 [lol]", *levels])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(get_bomb(), "uses YAML aliases", id="yaml-bomb"),
        pytest.param('{"a": ' * 500 + "1" + "}" * 500, "nested deeper", id="deep"),
        pytest.param("[" * 100_000, "not valid JSON|nested too deeply", id="deeper"),
        pytest.param(
            json.dumps([[0] * 500_001]), "more than 500,000 values", id="many"
        ),
        pytest.param("[" + " " * MAX_JSON_CHARS, "at most 5,000,000", id="long"),
        pytest.param("a: " + "x" * 1_000_001, "at most 1,000,000", id="long-yaml"),
        pytest.param('{"a": "\\ud800"}', "cannot be stored", id="surrogate"),
        pytest.param('{"a": 1e999}', "cannot be stored", id="infinity"),
        pytest.param('{"a": "\0"}', "cannot be stored", id="null"),
        pytest.param('{"a": 1', "not valid JSON: line 1", id="cut-off"),
        pytest.param("a: !!python/name:os.system", "tag", id="yaml-tag"),
        pytest.param('{"a": 1}\n{"b": 2}\n', "an object in each line", id="jsonl"),
        pytest.param(
            '{"openapi": "3", "info": {}, "paths": {}}', "OpenAPI", id="openapi"
        ),
        pytest.param('{"mcpServers": {}}', "MCP servers", id="mcp"),
        pytest.param('{"object": "assistant"}', "OpenAI assistant", id="assistant"),
        pytest.param(
            '{"dependencies": [], "graphs": {}}',
            "LangGraph configuration",
            id="langgraph",
        ),
        pytest.param(
            '{"a": 1}', "neither an agent file nor a file of Dify", id="other"
        ),
        pytest.param("[1, 2]", "neither an agent file", id="list"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_a_sentence(text, message):
    with pytest.raises(ForeignFileRefused, match=message):
        convert(text)


@pytest.mark.parametrize(
    "text",
    [
        "agentfile: 1\n",
        '{"agents": [], "agentfile": 1}',
        "# x\nagentfile: [",
        "hello",
        "",
    ],
)
def test_agent_files_and_plain_text_are_left_to_the_parser_of_agent_files(text):
    assert convert_foreign_file(text, make_user()) is None


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda one: one.title)
@pytest.mark.parametrize(
    "value",
    [None, 1, "x", [], {}, [[]], [None], [{}], {"x": None}, {"": [1]}],
    ids=repr,
)
def test_recognizing_and_converting_survives_any_value(importer, value):
    for field in (
        "nodes",
        "app",
        "model_config",
        "config",
        "agents",
        "components",
        "data",
    ):
        shape = {
            "kind": "app",
            "app": {"mode": "agent-chat"},
            "connections": {"a": value, "b": {"main": value}},
            "lc": 1,
            "component_type": "team",
            "provider": "p",
            "a": {"role": value, "goal": value, "tools": value},
            field: value,
        }
        with suppress(ForeignFileRefused):
            convert_foreign_file(json.dumps(shape), make_user("bob"))


@pytest.mark.parametrize(
    "text",
    [
        '{"connections": {}, "nodes": [{"type": "x.agent", "name": "a", "parameters": '
        '{"options": {"systemMessage": "=' + "{{ " * 200_000 + '"}}}]}',
        '{"connections": {}, "nodes": [{"type": "x.agent", "name": "a", "parameters": '
        '{"options": {"systemMessage": "={{' + " " * 900_000 + '"}}}]}',
        "from agents import Agent\na = Agent(name='x', instructions='"
        + "{" * 400_000
        + "')",
        "import '@openai/agents'\n" + "const a = `${" * 50_000,
        "import '@openai/agents'\nconst a = (" + "/* " * 200_000,
    ],
    ids=["expressions", "spaces", "braces", "templates", "comments"],
)
def test_hostile_text_takes_no_longer_than_its_length(text):
    make_provider()
    before = time.thread_time()

    with suppress(ForeignFileRefused):
        convert_foreign_file(text, make_user("ann"))

    assert time.thread_time() - before < 5


def make_provider(**fields: object) -> Provider:
    given = {
        "slug": "own",
        "name": "Own",
        "base_url": "https://api.openai.com/v1",
        "default_model": "gpt-4o",
        **fields,
    }
    return Provider.objects.create(owner=make_user("ann"), **given)


def test_a_provider_with_the_same_address_is_preferred():
    make_provider()

    found = convert(CREW)

    assert (get_agent(found).provider, found.file.providers) == ("own", ())


def test_a_known_model_server_that_is_missing_is_added():
    (provider,) = convert(CREW).file.providers

    assert (provider.slug, provider.base_url) == ("openai", "https://api.openai.com/v1")
    assert provider.key_env == ""


def test_an_unknown_model_server_is_replaced_and_listed():
    found = convert(CREW.replace("openai/gpt-4o", "mystery/m1"))

    assert (get_agent(found).provider, get_agent(found).model) == ("local", "m1")
    assert (
        "Setting “mystery m1”",
        "m1 of the provider local was selected.",
    ) in found.skipped


def test_says_what_to_do_without_any_model():
    with pytest.raises(
        ForeignFileRefused, match="Create a provider with a default model"
    ):
        convert_foreign_file("a: {role: x, goal: y, backstory: z}", make_user())


def test_slugs_of_other_users_are_avoided_and_own_ones_are_kept():
    make_agent(make_user("bob"), slug="writer")
    assert get_agent(convert(CREW)).slug == "writer-2"

    text = convert(CREW).text
    import_agentfile(text, make_user("ann"), inert=True)

    assert import_agentfile(text, make_user("ann"), inert=True).created == []


def test_an_existing_tool_with_the_same_function_is_used():
    Tool.objects.create(
        owner=make_user("ann"),
        slug="sums",
        name="sums",
        kind="function",
        config={"function": "tools.builtin.calculator:calculator"},
    )

    found = convert(DIFY)

    assert [use.tool for use in get_agent(found).tools] == ["sums"]
    assert found.file.tools == ()


def test_a_tool_that_an_agent_has_twice_is_used_once():
    twice = "[{tool_name: calculator}, {tool_name: calculator}]"

    agent = get_agent(convert(DIFY.replace("[{tool_name: calculator}]", twice)))

    assert [use.tool for use in agent.tools] == ["calculator"]


def test_the_result_is_inert():
    make_provider()
    found = convert(DIFY)

    import_agentfile(found.text, make_user("ann"), inert=True)

    assert Tool.objects.get().enabled is False


def test_penalties_are_left_out_for_providers_that_refuse_them():
    text = DIFY.replace(
        "name: gpt-4o}",
        "name: gpt-4o, completion_params: {frequency_penalty: 0.5, top_p: 1}}",
    )

    found = convert(text)

    assert get_agent(found).parameters == {"top_p": 1}
    assert "Setting “frequency_penalty”" in dict(found.skipped)


def test_names_without_latin_letters_get_a_slug():
    assert get_agent(convert(DIFY.replace("Sums", "旅行"))).slug == "agent"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        pytest.param(
            {"args_schema": {"type": "objekt"}},
            "This is not a valid JSON Schema: 'objekt' is not valid",
            id="schema",
        ),
        pytest.param({"name": ""}, "is not a valid tool name", id="name"),
        pytest.param({"config": {"url": "ftp://x"}}, "url: ", id="config"),
    ],
)
def test_a_tool_that_could_not_be_stored_is_listed_with_the_reason(more, reason):
    given = {"name": "lookup", "kind": "http", "config": {"url": "https://example.com"}}
    builder = AgentFileBuilder(make_user())

    assert builder.add_tool(ConvertedTool(**given | more)) is None

    (part,) = builder.skipped
    assert reason in part.reason
    assert builder.tools == {}


def test_files_with_agents_of_one_name_are_imported_side_by_side():
    ann = make_user("ann")
    stored = [import_crew(ann, goal) for goal in ("Write", "Edit", "Write", "Edit")]

    assert stored == [
        ["provider openai", "prompt template writer-instructions", "agent writer"],
        ["prompt template writer-2-instructions", "agent writer-2"],
        [],
        [],
    ]


def test_many_agents_of_one_name_do_not_need_an_attempt_each(
    django_assert_max_num_queries,
):
    ann = make_user("ann")
    count = 3 * MAX_ATTEMPTS
    for slug in ["writer", *(f"writer-{number}" for number in range(2, count + 1))]:
        make_agent(owner=ann, slug=slug)

    with django_assert_max_num_queries(40 * MAX_ATTEMPTS):
        created = import_crew(ann, "Write")

    assert created[-1] == f"agent writer-{count + 1}"


def import_crew(owner: User, goal: str) -> list[str]:
    """Import a file with one agent, `writer`; return what was created."""
    found = convert_foreign_file(CREW.replace("goal: Write", f"goal: {goal}"), owner)
    assert found is not None
    return import_agentfile(found.text, owner, inert=True).created
