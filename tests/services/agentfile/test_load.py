"""Importing agent files."""

from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.engine.types import LoopGuard
from runs.models import Agent, PromptTemplate, Provider
from runs.services.agentfile.export import export_agentfile
from runs.services.agentfile.load import ImportResult, import_agentfile
from runs.services.agentfile.text import AgentFileRefused, parse_agentfile
from runs.services.spec.freeze import freeze_agent
from tests.make import make_agent, make_provider, make_tool, make_user
from tools.models import Tool, ToolRevision

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[3]
ADD = "tools.builtin.calculator:calculator"
FILE = f"""
agentfile: 1
providers:
  - {{slug: local, kind: openai, base_url: "http://127.0.0.1:18080/v1", timeout: 60}}
prompts:
  - {{slug: my-react, template: "{{tools}} {{input}} {{agent_scratchpad}}"}}
tools:
  - {{slug: sums, kind: function, config: {{function: "{ADD}"}}}}
agents:
  - {{slug: adder, name: Adder, provider: local, model: m, parameters: {{seed: 1}},
     tools: [sums], executor: {{max_iterations: 300}}}}
  - {{slug: thinker, kind: react, provider: local, model: m, prompt: my-react,
     tools: [{{tool: sums, policy: ask}}]}}
"""


def mistakes(text: str, owner=None, **options) -> dict[str, str]:
    """Return what is wrong with the file, by place."""
    with pytest.raises(AgentFileRefused) as refused:
        import_agentfile(text, owner or make_user(), **options)
    return dict(refused.value.errors)


def all_rows() -> list[list[dict]]:
    return [
        list(model.objects.order_by("pk").values())
        for model in (Provider, PromptTemplate, Tool, Agent, ToolRevision)
    ]


def test_every_agent_with_a_mistake_is_named():
    text = """
agentfile: 1
providers: [{slug: p, kind: demo}]
agents:
  - {slug: a, kind: magic, provider: p, model: m}
  - {slug: b, kind: voodoo, provider: p, model: m}
"""
    assert list(mistakes(text)) == ["agents[0].kind", "agents[1].kind"]
    limits = "provider: p, model: m, executor: {max_iterations: -1}"
    text = f"""
agentfile: 1
providers: [{{slug: p, kind: demo}}]
agents:
  - {{slug: a, {limits}}}
  - {{slug: b, {limits}}}
  - {{slug: c, provider: p, model: m, tools: [{{agent: a}}]}}
"""
    assert list(mistakes(text)) == [
        "agents[0].executor.max_iterations",
        "agents[1].executor.max_iterations",
    ]


def test_a_function_with_a_dot_for_its_colon_is_corrected():
    text = FILE.replace(ADD, ADD.replace(":", "."))

    assert mistakes(text) == {
        "tools[0].config.function": f"The function {ADD.replace(':', '.')!r} is not "
        f"registered. Did you mean {ADD!r}?"
    }


def test_a_tool_may_have_a_name_in_any_language():
    text = FILE.replace("{slug: sums,", '{slug: sums, name: "算 数",')

    import_agentfile(text, make_user())

    tool = Tool.objects.get()
    assert (tool.slug, tool.name) == ("sums", "算 数")
    tool.full_clean()
    assert [freeze_agent(agent).tools[0].name for agent in Agent.objects.all()] == [
        "算 数"
    ] * 2


@pytest.mark.parametrize("inert", [False, True])
def test_a_placeholder_without_an_argument_is_named(inert):
    text = """
agentfile: 1
tools:
  - {slug: t, kind: http, description: d, args_schema: {type: object, properties: {}},
     config: {method: GET, url: "https://a.example/{id}"}}
"""

    message = mistakes(text, inert=inert)["tools[0].config"]
    assert message == "{id} is not an argument of this tool, which has none."


def test_makes_and_publishes_everything():
    ann = make_user()

    done = import_agentfile(FILE, ann)

    assert done.created == [
        "provider local",
        "prompt template my-react",
        "tool sums",
        "agent adder",
        "agent thinker",
    ]
    assert done.published == ["agent adder", "agent thinker"]
    adder = Agent.objects.get(slug="adder")
    assert (adder.owner, adder.kind, adder.name) == (ann, "tool-calling", "Adder")
    assert adder.executor == {"max_iterations": 300}
    assert adder.versions.get().spec.body["tools"][0]["name"] == "calculator"


def test_a_function_tool_is_as_its_function_declares():
    import_agentfile(FILE, make_user())

    tool = Tool.objects.get(slug="sums")
    assert (tool.name, tool.effect, tool.approval) == ("calculator", "read", "never")
    assert "expression" in tool.args_schema["properties"]
    assert tool.description
    assert tool.enabled


def test_repeated_rounds_end_a_run_unless_the_file_switches_that_off():
    owner = make_user()
    for executor, guard in (("{}", LoopGuard()), ("{loop_guard: null}", None)):
        import_agentfile(FILE.replace("{max_iterations: 300}", executor), owner)

        adder = Agent.objects.get(slug="adder")
        assert freeze_agent(adder).executor.loop_guard == guard
        exported = parse_agentfile(export_agentfile(["adder"]))
        assert exported.agents[0].executor.loop_guard == guard


def test_a_policy_reaches_the_agent():
    import_agentfile(FILE, make_user())

    version = Agent.objects.get(slug="thinker").versions.get()
    assert version.spec.body["tools"][0]["asks"]


def test_a_second_import_changes_nothing():
    ann = make_user()
    import_agentfile(FILE, ann)
    before = all_rows()

    assert import_agentfile(FILE, ann) == ImportResult([], [], [])
    assert all_rows() == before


def test_a_changed_file_makes_a_new_revision_and_version():
    ann = make_user()
    import_agentfile(FILE, ann)

    done = import_agentfile(FILE.replace("slug: sums,", "slug: sums, timeout: 7,"), ann)

    assert (done.created, done.updated) == ([], ["tool sums"])
    assert done.published == ["agent adder", "agent thinker"]
    assert done.changed_fields == {"tool sums": ("timeout",)}
    assert Tool.objects.get().revision == 2
    assert Agent.objects.get(slug="adder").versions.count() == 2


def test_tools_that_are_left_out_are_taken_away():
    ann = make_user()
    import_agentfile(FILE, ann)

    done = import_agentfile(FILE.replace("tools: [sums], ", ""), ann)

    assert done.updated == ["agent adder"]
    assert not Agent.objects.get(slug="adder").uses.exists()


def test_a_test_counts_until_a_file_changes_what_is_reached():
    ann = make_user()
    import_agentfile(FILE, ann)
    Provider.objects.update(tested_at=timezone.now(), test_error="Connection failed.")

    import_agentfile(FILE.replace("timeout: 60", "timeout: 7"), ann)
    kept = Provider.objects.get()
    import_agentfile(FILE.replace(kept.base_url, f"{kept.base_url}/new"), ann)
    changed = Provider.objects.get()

    assert (kept.timeout, kept.test_error) == (7, "Connection failed.")
    assert (changed.tested_at, changed.test_error) == (None, "")


def test_a_key_that_was_typed_in_is_left_alone():
    ann = make_user()
    import_agentfile(FILE, ann)
    provider = Provider.objects.get()
    provider.set_key("secret")
    provider.save()

    import_agentfile(FILE.replace("timeout: 60", "timeout: 9"), ann)

    provider.refresh_from_db()
    assert (provider.key(), provider.timeout) == ("secret", 9)


def test_the_operators_file_may_name_the_variable_of_a_key(monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", "sk-local")

    import_agentfile(reading("LOCAL_KEY"), make_user(is_superuser=True))

    assert Provider.objects.get().key() == "sk-local"


@pytest.mark.parametrize(
    ("name", "is_superuser", "inert"),
    [
        pytest.param("SECRET_KEY", True, False, id="agentsites-own"),
        pytest.param("LOCAL_KEY", False, False, id="owner-is-no-superuser"),
        pytest.param("LOCAL_KEY", True, True, id="from-anywhere"),
        pytest.param("OPENAI_API_KEY", True, True, id="to-another-server"),
    ],
)
def test_refuses_a_variable_that_must_not_be_sent(name, is_superuser, inert):
    owner = make_user(is_superuser=is_superuser)

    assert list(mistakes(reading(name), owner, inert=inert)) == ["providers[0].key_env"]


def reading(name: str) -> str:
    """Return the file, its provider with a key from the variable `name`."""
    return FILE.replace("timeout: 60", f"key_env: {name}")


def test_what_was_archived_comes_back():
    ann = make_user()
    import_agentfile(FILE, ann)
    agent = Agent.objects.get(slug="adder")
    agent.archived_at = agent.created_at
    agent.save()

    import_agentfile(FILE, ann)

    agent.refresh_from_db()
    assert agent.archived_at is None


def test_agents_may_use_one_another_in_any_order():
    ann = make_user()
    text = """
agentfile: 1
agents:
  - {slug: boss, provider: p, model: m, tools: [{agent: hand}]}
  - {slug: hand, provider: p, model: m}
"""
    make_provider(ann, slug="p")

    import_agentfile(text, ann)

    assert Agent.objects.get(slug="boss").uses.get().sub_agent.slug == "hand"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("providers", "{slug: taken, kind: demo}"),
        ("prompts", "{slug: taken, template: x}"),
        ("tools", f"{{slug: taken, config: {{function: '{ADD}'}}}}"),
        ("agents", "{slug: taken, provider: open, model: m}"),
    ],
)
def test_a_slug_of_another_is_refused(kind, text):
    bob = make_user()
    make_provider(bob, slug="open", visibility="everyone")
    make_provider(bob, slug="taken")
    make_tool(bob, slug="taken")
    make_agent(bob, slug="taken")
    PromptTemplate.objects.create(owner=bob, slug="taken", name="x", template="x")
    before = all_rows()

    found = mistakes(f"agentfile: 1\n{kind}: [{text}]")

    assert list(found) == [f"{kind}[0].slug"]
    assert all_rows() == before


def test_a_mistake_at_the_end_leaves_nothing_behind():
    found = mistakes(FILE + "  - {slug: x, provider: nowhere, model: m}\n")

    assert list(found) == ["agents[2].provider"]
    assert not any(all_rows())


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        pytest.param("provider: p, tools: [nix]", "agents[0].tools[0]", id="no-tool"),
        pytest.param("provider: q", "agents[0].provider", id="foreign-provider"),
        pytest.param("provider: p, prompt: nix", "agents[0].prompt", id="no-prompt"),
        pytest.param("provider: p, kind: nix", "agents[0].kind", id="no-kind"),
        pytest.param(
            "provider: p, executor: {max_iterations: -1}",
            "agents[0].executor.max_iterations",
            id="executor",
        ),
        pytest.param(
            "provider: p, tools: [t, t]", "agents[0].tools[1]", id="same-tool-twice"
        ),
        pytest.param(
            "provider: p, tools: [t, u]", "agents[0].tools[1]", id="same-name-twice"
        ),
        pytest.param(
            "provider: p, tools: [{tool: v, policy: deny}, t, u]",
            "agents[0].tools[2]",
            id="same-name-after-a-denied-one",
        ),
        pytest.param(
            "provider: p, tools: [{agent: a}]", "agents[0].tools[0]", id="itself"
        ),
    ],
)
def test_an_agent_that_could_not_run_is_refused_by_place(entry, place):
    ann = make_user()
    make_provider(ann, slug="p")
    make_provider(slug="q")
    for slug in ("t", "u"):
        make_tool(ann, slug=slug, name="same")
    make_tool(ann, slug="v")

    found = mistakes(f"agentfile: 1\nagents: [{{slug: a, model: m, {entry}}}]", ann)

    assert list(found) == [place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("providers: [{slug: a}]", "providers[0].base_url", id="no-url"),
        pytest.param(
            "providers: [{slug: a, base_url: 'http://u:pw@host/'}]",
            "providers[0].base_url",
            id="password",
        ),
        pytest.param(
            "providers: [{slug: a, base_url: 'ftp://x'}]",
            "providers[0].base_url",
            id="ftp",
        ),
        pytest.param(
            "providers: [{slug: a, base_url: 'http://x:99999'}]",
            "providers[0].base_url",
            id="port",
        ),
        pytest.param(
            "providers: [{slug: a, kind: nix}]", "providers[0].kind", id="provider-kind"
        ),
        pytest.param(
            "prompts: [{slug: a, template: '{x'}]", "prompts[0].template", id="brace"
        ),
        pytest.param(
            "prompts: [{slug: a, messages: [{role: user, template: '}'}]}]",
            "prompts[0].messages[0].template",
            id="brace-in-message",
        ),
        pytest.param(
            "tools: [{slug: a, config: {function: 'os:system'}}]",
            "tools[0].config.function",
            id="function",
        ),
        pytest.param("tools: [{slug: a, kind: nix}]", "tools[0].kind", id="tool-kind"),
        pytest.param(
            f"tools: [{{slug: a, name: 'a[b', config: {{function: '{ADD}'}}}}]",
            "tools[0].name",
            id="tool-name",
        ),
        pytest.param(
            "tools: [{slug: a, args_schema: {type: 5}}]",
            "tools[0].args_schema",
            id="schema",
        ),
        pytest.param(
            "tools: [{slug: a, credential: nix}]",
            "tools[0].credential",
            id="credential",
        ),
        pytest.param(
            "providers: [{slug: a, kind: demo}, {slug: a, kind: demo}]",
            "providers[1].slug",
            id="twice",
        ),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused_by_place(text, place):
    found = mistakes(f"agentfile: 1\n{text}")

    assert place in found
    assert not any(all_rows())


def test_an_inert_import_makes_drafts_that_are_off():
    done = import_agentfile(FILE, make_user(), inert=True)

    assert done.published == []
    tool = Tool.objects.get()
    assert (tool.enabled, tool.approval) == (False, "side_effects")
    assert not Agent.objects.get(slug="adder").versions.exists()


def test_an_inert_import_changes_nothing_that_is_there():
    ann = make_user()
    import_agentfile(FILE, ann)
    before = all_rows()

    found = mistakes(
        FILE.replace("18080", "666").replace("seed", "sod"), ann, inert=True
    )

    assert "providers[0].slug" in found
    assert "agents[0].slug" in found
    assert all_rows() == before


@pytest.mark.parametrize("inert", [True, False])
def test_only_the_operator_s_import_offers_agents_to_programs(inert):
    ann = make_user()
    import_agentfile(FILE.replace("seed: 1", "seed: 2"), ann, inert=inert)
    offering = FILE.replace("name: Adder", "name: Adder, is_offered: true")

    import_agentfile(offering.replace("slug: adder", "slug: other"), ann, inert=inert)

    assert Agent.objects.get(slug="other").is_offered is not inert


def test_a_file_that_does_not_say_so_keeps_what_is_offered():
    ann = make_user()
    import_agentfile(FILE, ann)
    Agent.objects.update(is_offered=True)

    import_agentfile(FILE.replace("seed: 1", "seed: 2"), ann)

    assert Agent.objects.get(slug="adder").is_offered


def test_the_same_inert_import_twice_does_no_harm():
    ann = make_user()
    import_agentfile(FILE, ann, inert=True)

    assert import_agentfile(FILE, ann, inert=True) == ImportResult([], [], [])


def test_the_command_takes_the_first_superuser(tmp_path):
    make_user()
    boss = make_user(is_superuser=True)
    make_user(is_superuser=True)
    (tmp_path / "a.yaml").write_text(FILE)
    out = StringIO()

    call_command("import_agentfile", str(tmp_path / "a.yaml"), stdout=out)

    assert Agent.objects.get(slug="adder").owner == boss
    assert "created agent adder" in out.getvalue()


def test_the_command_takes_the_named_owner_and_standard_input(monkeypatch):
    ann = make_user()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(FILE.encode())))

    call_command("import_agentfile", "-", owner=ann.username, stdout=StringIO())

    assert Agent.objects.get(slug="adder").owner == ann


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"agentfile: 2", "imported.\nagentfile: ", id="refused"),
        pytest.param(b"\xff", "is not UTF-8", id="bytes"),
        pytest.param(None, "cannot be read: No such file", id="no-file"),
    ],
)
def test_the_command_ends_with_a_sentence(tmp_path, content, why):
    make_user(is_superuser=True)
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(CommandError, match=why):
        call_command("import_agentfile", str(path))


CALLERS = """
agentfile: 1
providers: [{slug: p, base_url: "http://127.0.0.1:1/v1"}]
prompts: [{slug: two, kind: tool-calling,
  messages: [{role: user, template: "{input} in TOWN"}]}]
agents:
  - {slug: boss, provider: p, model: m, tools: [{agent: hand, policy: ask}]}
  - {slug: hand, provider: p, model: m, prompt: two, tools: [END]}
"""


def test_agents_that_call_one_another_in_a_circle_are_refused():
    text = CALLERS.replace("END", "{agent: boss}")

    found = mistakes(text)

    assert set(found) == {"agents[0].tools[0]", "agents[1].tools[0]"}
    assert "boss → hand → boss" in found["agents[0].tools[0]"]


def test_callers_are_published_with_the_inputs_of_what_they_call():
    ann = make_user()
    import_agentfile(CALLERS.replace("END", ""), ann)
    text = CALLERS.replace("END", "").replace("TOWN", "{town}")

    done = import_agentfile(text, ann)
    again = import_agentfile(text, ann)

    assert done.published == ["agent hand", "agent boss"]
    assert again.published == []
    tool = Agent.objects.get(slug="boss").versions.first().spec.body["tools"][0]
    assert tool["args_schema"]["required"] == ["input", "town"]


def test_the_example_of_the_docs_is_taken_and_comes_back():
    ann = make_user()
    make_provider(ann, slug="local")
    make_tool(ann, slug="send-mail", config={"function": ADD})
    page = (ROOT / "docs/agents-as-tools.md").read_text()
    text = "agentfile: 1\n" + page.split("```yaml\n")[1].split("```")[0]

    done = import_agentfile(text, ann)

    assert done.published == ["agent scout", "agent editor", "agent chief"]
    chief = Agent.objects.get(slug="chief")
    (tool,) = freeze_agent(chief).tools
    assert (tool.name, tool.asks, tool.calls_per_run) == ("write", True, 3)
    again = import_agentfile(export_agentfile(["chief"]), ann)
    assert again.published == []


@pytest.mark.parametrize(
    ("overrides", "place", "message"),
    [
        ("effect: read", "effect", "own effect is idempotent"),
        ("timeout: 9", "timeout", "own limit is 5."),
        ("retries: 3", "retries", "own limit is 1."),
        ("calls_per_run: 8", "calls_per_run", "own limit is 7."),
    ],
)
def test_an_agent_that_is_less_strict_than_its_tool_is_refused(
    overrides, place, message
):
    limits = "effect: idempotent, timeout: 5, retries: 1, calls_per_run: 7"
    text = FILE.replace("{slug: sums,", f"{{slug: sums, {limits},").replace(
        "policy: ask", f"policy: ask, overrides: {{{overrides}}}"
    )

    ((at, sentence),) = mistakes(text).items()

    assert at == f"agents[1].tools[0].overrides.{place}"
    assert message in sentence


def test_a_stricter_agent_is_taken():
    text = FILE.replace("policy: ask", "overrides: {effect: side_effect, timeout: 2}")

    import_agentfile(text, make_user())

    (spec,) = freeze_agent(Agent.objects.get(slug="thinker")).tools
    assert (spec.effect, spec.timeout) == ("side_effect", 2)
