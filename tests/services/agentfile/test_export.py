"""Exporting agents."""

from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from runs.models import Agent, AgentTool, AgentVersion, PromptTemplate, Provider
from runs.services.agentfile.export import (
    AgentNotFound,
    export_agentfile,
    export_tools,
)
from runs.services.agentfile.load import ImportResult, import_agentfile
from runs.services.agentfile.text import parse_agentfile
from runs.services.agents.publish import publish_agent
from tests.make import make_agent, make_prompt, make_provider, make_tool, make_user
from tests.services.agentfile.test_load import FILE
from tools.models import Tool

pytestmark = pytest.mark.django_db


def empty_tables() -> None:
    AgentTool.objects.all().delete()
    for model in (Agent, PromptTemplate, Provider, Tool):
        model.objects.all().delete()


def test_what_is_exported_imports_back_to_the_same():
    ann = make_user()
    import_agentfile(FILE, ann)

    text = export_agentfile()

    assert import_agentfile(text, ann) == ImportResult([], [], [])
    empty_tables()
    import_agentfile(text, ann)
    assert export_agentfile() == text


def test_every_field_of_an_agent_is_in_the_file():
    ann = make_user()
    tool = make_tool(
        ann,
        kind="function",
        config={"function": "tools.builtin.calculator:calculator"},
        name="other",
        description="Other words.",
        effect="side_effect",
        approval="always",
        args_schema={"type": "object"},
        on_error="end",
        timeout=3.5,
        retries=2,
        calls_per_run=4,
        output_limit=5,
        return_direct=True,
        hosts=["a.example.org"],
        slug="other",
    )
    tool.config = {"function": "tools.builtin.clock:clock"}
    agent = make_agent(
        ann,
        slug="full",
        description="All of it.",
        parameters={"temperature": 0.5},
        prompt=make_prompt(ann, slug="words", partials={"lang": "de"}),
        executor={"max_iterations": None, "loop_guard": {"hint": 2, "stop": 4}},
        memory=True,
        suggested_questions=["Where to?"],
        is_offered=True,
        continues_without_client=True,
        visibility="everyone",
    )
    sub = make_agent(ann, slug="sub", provider=agent.provider)
    AgentTool.objects.create(
        agent=agent, tool=tool, policy="ask", overrides={"timeout": 9}, position=1
    )
    AgentTool.objects.create(agent=agent, sub_agent=sub, position=0)

    file = parse_agentfile(export_agentfile(["full"]))

    assert [a.slug for a in file.agents] == ["full", "sub"]
    entry = file.agents[0]
    assert (entry.description, entry.memory) == ("All of it.", True)
    assert entry.suggested_questions == ("Where to?",)
    assert (entry.is_offered, entry.continues_without_client) == (True, True)
    assert (entry.visibility, entry.prompt) == ("everyone", "words")
    assert entry.executor.max_iterations is None
    assert entry.executor.loop_guard.stop == 4
    assert [(u.agent, u.tool, u.policy) for u in entry.tools] == [
        ("sub", None, "default"),
        (None, "other", "ask"),
    ]
    assert file.prompts[0].partials == {"lang": "de"}


def test_a_tool_keeps_what_differs_from_its_function():
    ann = make_user()
    import_agentfile(FILE, ann)
    Tool.objects.update(timeout=3.5, effect="side_effect", approval="always")

    (entry,) = parse_agentfile(export_agentfile(["adder"])).tools

    assert (entry.timeout, entry.effect, entry.approval) == (
        3.5,
        "side_effect",
        "always",
    )
    assert (entry.description, entry.args_schema, entry.name) == (None, None, None)


def test_secrets_stay_here():
    ann = make_user()
    provider = make_provider(ann)
    provider.set_key("sk-secret")
    provider.set_headers("X-Key: sk-secret")
    provider.save()
    make_agent(ann, provider=provider)

    text = export_agentfile()

    assert "secret" not in text
    assert provider.sealed_key not in text


def test_a_long_program_of_a_tool_is_exported_whole():
    ann = make_user("ann")
    code = "total = 0\n" + "total += 1\n" * 1_000
    tool = make_tool(ann, name="count", kind="python", config={"code": code})

    (entry,) = parse_agentfile(export_tools([tool], by=ann)).tools

    assert entry.config["code"] == code


def test_only_what_is_asked_for_is_exported():
    import_agentfile(FILE, make_user())

    file = parse_agentfile(export_agentfile(["adder"]))

    assert [agent.slug for agent in file.agents] == ["adder"]
    assert file.prompts == ()


def test_things_of_others_are_named_only():
    provider = make_provider(slug="shared", visibility="everyone")
    ann = make_user()
    make_agent(ann, slug="mine", provider=provider)

    text = export_agentfile(["mine"])

    assert parse_agentfile(text).providers == ()
    assert import_agentfile(text, ann).updated == []


def test_archived_agents_are_left_out_unless_named():
    agent = make_agent(slug="old")
    agent.archived_at = agent.created_at
    agent.save()

    assert parse_agentfile(export_agentfile()).agents == ()
    assert len(parse_agentfile(export_agentfile(["old"])).agents) == 1


def test_an_unknown_slug_is_refused():
    with pytest.raises(AgentNotFound, match="Agent 'nix' not found"):
        export_agentfile(["nix"])
    with pytest.raises(CommandError, match="Agent 'nix' not found"):
        call_command("export_agentfile", "nix")


def test_the_command_prints_only_the_file():
    ann = make_user()
    make_agent(ann, slug="mine")
    make_agent(slug="other")
    out = StringIO()

    call_command("export_agentfile", owner=ann.username, stdout=out)

    assert [agent.slug for agent in parse_agentfile(out.getvalue()).agents] == ["mine"]


def test_what_a_tool_does_not_leave_any_more_stays_here():
    tool = make_tool(slug="slow", timeout=5)
    agent = make_agent(tool.owner, slug="one", tools=(tool,))
    agent.uses.update(overrides={"timeout": 50, "calls_per_run": 2})

    (entry,) = parse_agentfile(export_agentfile(["one"])).agents

    assert entry.tools[0].overrides == {"calls_per_run": 2}


def test_the_newest_version_is_exported_and_never_what_was_not_published():
    import_agentfile(FILE, ann := make_user())
    agent = Agent.objects.get(slug="adder")
    agent.description = "DRAFT ONLY"
    agent.save()

    (kept,) = parse_agentfile(export_agentfile(["adder"])).agents
    (draft,) = parse_agentfile(export_agentfile(["adder"], draft=True)).agents

    assert (kept.description, kept.version, kept.draft) != ("DRAFT ONLY", None, True)
    assert (kept.version, kept.draft) == (1, False)
    assert (draft.description, draft.version, draft.draft) == ("DRAFT ONLY", None, True)
    done = import_agentfile(export_agentfile(["adder"], draft=True), ann)
    assert done.published == []


def test_a_prompt_that_changed_since_is_exported_as_the_version_had_it():
    ann = make_user()
    prompt = make_prompt(ann, slug="words", template="Old. {input} {agent_scratchpad}")
    agent = make_agent(ann, slug="one", kind="react", prompt=prompt)
    agent.provider.owner = ann
    agent.provider.save()
    publish_agent(agent, by=ann)
    prompt.template = "New. {input} {agent_scratchpad}"
    prompt.save()

    file = parse_agentfile(export_agentfile(["one"]))

    assert file.agents[0].prompt == "one-v1"
    assert [(p.slug, p.template) for p in file.prompts] == [
        ("one-v1", "Old. {input} {agent_scratchpad}")
    ]


def test_groups_and_approvers_travel_by_name_and_missing_ones_are_listed():
    ann = make_user()
    desk, billing = (Group.objects.create(name=name) for name in ("desk", "billing"))
    tool = make_tool(
        ann,
        slug="pay",
        approvers=billing,
        second_person=True,
        kind="python",
        config={"code": "1 + 1"},
    )
    agent = make_agent(ann, slug="one", tools=(tool,), visibility="groups")
    agent.groups.add(desk)
    text = export_agentfile(["one"])
    Tool.objects.update(approvers=None, second_person=False)
    agent.groups.clear()

    assert import_agentfile(text, ann).missing == ()
    tool.refresh_from_db()
    assert (list(agent.groups.all()), tool.approvers, tool.second_person) == (
        [desk],
        billing,
        True,
    )

    Tool.objects.update(approvers=None)
    agent.groups.clear()
    Group.objects.all().delete()
    assert import_agentfile(text, ann).missing == (
        "pay needs the group 'billing'",
        "one needs the group 'desk'",
    )


def test_a_dry_run_changes_nothing_and_a_draft_import_publishes_nothing():
    ann = make_user()

    tried = import_agentfile(FILE, ann, dry_run=True)
    assert "agent adder" in tried.created
    assert not Agent.objects.exists()

    done = import_agentfile(FILE, ann, draft=True)
    assert (done.created, done.published) == (tried.created, [])
    assert not AgentVersion.objects.exists()


def test_the_command_says_what_a_dry_run_would_do(tmp_path):
    make_user("root", is_superuser=True)
    path, out = tmp_path / "agents.yaml", StringIO()
    path.write_text(FILE)

    call_command("import_agentfile", str(path), dry_run=True, stdout=out)
    tried = out.getvalue()
    call_command("import_agentfile", str(path), stdout=out)

    assert "would create agent " in tried
    assert "would publish agent " in tried
    assert "created agent " in out.getvalue()
    assert "published agent " in out.getvalue()
