"""One tool in the hands of one agent."""

import pytest
from django.test import Client

from runs.services.spec.freeze import freeze_agent
from tests.make import make_agent, make_tool
from tests.views.agents.test_form import typed
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


READS = {"function": "tools.builtin.web_page:web_page"}
"""A function that keeps to hosts."""


def address(agent, tool) -> str:
    return f"/agents/{agent.pk}/tools/{tool.pk}/"


def test_shows_what_the_tool_says_and_what_differs(client, ann):
    tool = make_tool(ann, name="search", description="Finds.", calls_per_run=9)
    agent = make_agent(ann, tools=(tool,))
    agent.uses.update(overrides={"calls_per_run": 3})

    page = client.get(address(agent, tool)).content.decode()

    assert 'placeholder="search"' in page
    assert 'value="3"' in page
    assert (
        address(agent, tool) in client.get(f"/agents/{agent.pk}/edit/").content.decode()
    )


def test_what_is_saved_is_what_a_run_gets(client, ann):
    tool = make_tool(
        ann, name="search", calls_per_run=9, retries=2, effect="read", config=READS
    )
    agent = make_agent(ann, tools=(tool,))

    answer = client.post(
        address(agent, tool),
        {
            **{"policy": "ask", "name": "look_up", "calls_per_run": "2"},
            **{"output_limit": "500", "timeout": "3", "retries": "1"},
            **{"hosts": "a.example", "on_error": "end", "return_direct": "yes"},
            **{"effect": "idempotent", "approval_hours": "0", "at_expiry": "stop"},
        },
    )

    (spec,) = freeze_agent(agent).tools
    assert answer.headers["Location"] == f"/agents/{agent.pk}/edit/"
    assert (spec.name, spec.asks, spec.calls_per_run) == ("look_up", True, 2)
    assert (spec.output_limit, spec.timeout, spec.retries) == (500, 3.0, 1)
    assert (spec.on_error, spec.return_direct) == ("end", True)
    assert spec.config["hosts"] == ["a.example"]
    assert (spec.effect, spec.approval_hours) == ("idempotent", 0)
    assert spec.at_expiry == "stop"
    entry = AuditEntry.objects.filter(noun="agent tool").first()
    assert (entry.by, entry.changes["policy"]) == ("ann", ["default", "ask"])


def test_a_tool_that_always_asks_cannot_be_allowed(client, ann):
    tool = make_tool(ann, approval="always")
    agent = make_agent(ann, tools=(tool,))

    page = client.post(address(agent, tool), {"policy": "allow"}).content.decode()

    assert "An agent cannot override that" in page
    assert agent.uses.get().policy == "default"
    assert "Always asks" in client.get(f"/agents/{agent.pk}/edit/").content.decode()


def test_saving_the_agent_keeps_it(client, ann):
    tool = make_tool(ann)
    agent = make_agent(ann, tools=(tool,))
    client.post(address(agent, tool), {"policy": "default", "name": "look_up"})

    client.post(
        f"/agents/{agent.pk}/edit/",
        typed(ann, **{f"tool-{tool.pk}": "ask"}),
    )

    assert agent.uses.get().policy == "ask"
    assert agent.uses.get().overrides == {"name": "look_up"}


def test_two_tools_of_one_name_are_distinguished_here(client, ann):
    one, two = make_tool(ann, name="search"), make_tool(ann, name="search")
    agent = make_agent(ann, tools=(one,))

    refused = client.post(address(agent, two), {"policy": "default"})
    assert "Two tools are named &#x27;search&#x27;" in refused.content.decode()
    assert agent.uses.count() == 1

    client.post(address(agent, two), {"policy": "default", "name": "search_more"})
    assert {spec.name for spec in freeze_agent(agent).tools} == {
        "search",
        "search_more",
    }


def test_the_agents_own_form_refuses_two_tools_of_one_name(client, ann):
    one, two = make_tool(ann, name="search"), make_tool(ann, name="search")
    agent = make_agent(ann)

    page = client.post(
        f"/agents/{agent.pk}/edit/",
        typed(ann, **{f"tool-{one.pk}": "ask", f"tool-{two.pk}": "ask"}),
    )

    assert "Two tools are named &#x27;search&#x27;" in page.content.decode()
    assert not agent.uses.exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"calls_per_run": "99"}, "own limit is 5."),
        ({"timeout": "61"}, "own limit is 60."),
        ({"retries": "1"}, "own limit is 0."),
        ({"effect": "read"}, "stricter than the tool"),
        ({"approval_hours": "-1"}, "0 or more"),
        ({"hosts": "b.example"}, "may not contact"),
        ({"hosts": "https://x/"}, "is not a host name"),
        ({"timeout": "0"}, "0.1 or more"),
        ({"name": "no[name]"}, "is not a valid tool name"),
        ({"policy": "maybe"}, "valid choice"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field(client, ann, given, says):
    tool = make_tool(
        ann, calls_per_run=5, hosts=["a.example"], effect="idempotent", config=READS
    )
    agent = make_agent(ann, tools=(tool,))

    page = client.post(address(agent, tool), {"policy": "default", **given})

    assert says in page.content.decode()
    assert agent.uses.get().overrides == {}


def test_hosts_are_refused_for_a_function_that_does_not_keep_to_them(client, ann):
    tool = make_tool(ann, config={"function": "tools.builtin.calculator:calculator"})
    agent = make_agent(ann, tools=(tool,))

    page = client.post(
        address(agent, tool), {"policy": "default", "hosts": "a.example"}
    ).content.decode()

    assert "these hosts. Leave the field empty" in page
    assert agent.uses.get().overrides == {}


def test_what_is_someone_elses_is_hidden(client, ann):
    tool, agent = make_tool(ann), make_agent(ann)
    others_tool, others_agent = make_tool(), make_agent(visibility="everyone")

    for one, other in ((agent, others_tool), (others_agent, tool)):
        assert client.get(address(one, other)).status_code == 404
        assert client.post(address(one, other), {"policy": "ask"}).status_code == 404
    assert Client().get(address(agent, tool)).status_code == 302


def test_what_the_tool_does_not_leave_any_more_is_not_shown(client, ann):
    tool = make_tool(ann, timeout=5, effect="side_effect")
    agent = make_agent(ann, tools=(tool,))
    agent.uses.update(overrides={"timeout": 50, "effect": "read", "name": "pay"})

    page = client.get(address(agent, tool)).content.decode()
    client.post(address(agent, tool), {"policy": "default", "name": "pay"})

    assert 'value="50' not in page
    assert agent.uses.get().overrides == {"name": "pay"}


def test_the_agents_form_shows_what_a_call_counts_as(client, ann):
    agent = make_agent(ann, tools=(make_tool(ann, effect="read"),))
    agent.uses.update(overrides={"effect": "side_effect"})

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    assert '<span class="tag" data-tone="need">' in page


@pytest.mark.parametrize(
    ("effect", "tone"),
    [("read", ""), ("idempotent", ' data-tone="need"')],
)
def test_the_tag_of_a_tool_that_writes_has_a_color(client, ann, effect, tone):
    tool = make_tool(ann, effect=effect)
    agent = make_agent(ann, tools=(tool,))

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    label = {"read": "read-only", "idempotent": "idempotent"}[effect]
    assert f'<span class="tag"{tone}>{label}</span>' in page


@pytest.mark.parametrize("kind", ["tool-calling", "react"])
def test_an_agent_of_any_kind_gives_a_tool_a_name_in_any_language(client, ann, kind):
    tool = make_tool(ann, name="search")
    agent = make_agent(ann, kind=kind, tools=(tool,))

    client.post(address(agent, tool), {"policy": "default", "name": "查询 天气"})

    assert [spec.name for spec in freeze_agent(agent).tools] == ["查询 天气"]
