"""The list of agents: filters, pages and actions on selected agents."""

import pytest
from django.contrib.auth.models import Group

from runs.models import Agent, PromptTemplate
from runs.services.agentfile.text import parse_agentfile
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import ToolAssignment, save_agent
from tests.make import make_agent, make_provider, make_run, make_schedule, make_user
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def names(client, query=""):
    return [agent.name for agent in client.get(f"/agents/{query}").context["agents"]]


def act(client, do, *agents, **more):
    data = {"do": do, "agent": [agent.pk for agent in agents], "here": "/agents/?q="}
    return client.post("/agents/selected/", data | more)


def test_filters_by_owner_kind_provider_and_sharing(client, ann):
    mine = make_agent(ann, name="mine", kind="react")
    other = make_agent(name="other", kind="xml", visibility="everyone")

    assert names(client) == ["mine", "other"]
    for query in (
        f"?owner={other.owner_id}",
        "?kind=xml",
        f"?provider={other.provider_id}",
        "?sharing=everyone",
        f"?kind=xml&owner={other.owner_id}&q=oth",
    ):
        assert names(client, query) == ["other"]
    assert names(client, f"?provider={mine.provider_id}&kind=xml") == []


def test_offers_only_what_visible_agents_have(client, ann):
    make_agent(ann, kind="react", provider=make_provider(ann, name="ours"))
    make_agent(kind="xml", provider=make_provider(name="hidden"))

    choices = client.get("/agents/").context["choices"]

    assert [one.value for one in choices.kinds] == ["react"]
    assert [one.label for one in choices.providers] == ["ours"]
    assert [one.label for one in choices.owners] == ["ann"]


@pytest.mark.parametrize(
    "query", ["?owner=x", "?owner=-1", "?kind=nope", "?provider=²", "?sharing=%00"]
)
def test_an_invalid_filter_is_left_out(client, ann, query):
    make_agent(ann, name="mine")

    assert names(client, query) == ["mine"]


def test_no_match_leads_back_to_all_agents(client, ann):
    make_agent(ann)

    page = client.get("/agents/?archived=1&sharing=everyone").text

    assert "No matching agents" in page
    assert 'href="?archived=1"' in page


def test_long_lists_have_pages_that_keep_the_filters(client, ann):
    provider = make_provider(ann)
    for number in range(61):
        make_agent(ann, name=f"a{number:02}", kind="react", provider=provider)

    first = client.get("/agents/?kind=react")

    assert 'href="?kind=react&amp;page=2"' in first.text
    assert "1–60 of 61" in first.text
    assert names(client, "?kind=react&page=2") == ["a60"]


def test_names_are_in_natural_order(client, ann):
    for name in ("Desk 10", "desk 2", "Desk 1", "10 desks", "b", "A", "Desk"):
        make_agent(ann, name=name)

    assert names(client) == [
        *("10 desks", "A", "b", "Desk", "Desk 1", "desk 2", "Desk 10")
    ]


def test_only_agents_that_one_may_edit_can_be_selected(client, ann):
    mine = make_agent(ann)
    other = make_agent(visibility="everyone")

    page = client.get("/agents/").text

    assert f'name="agent" value="{mine.pk}"' in page
    assert f'name="agent" value="{other.pk}"' not in page


@pytest.mark.parametrize("do", ["archive", "share", "export", "delete"])
def test_agents_of_others_are_left_alone(client, ann, do):
    other = make_agent(visibility="groups")

    answer = act(client, do, other, sure="1")

    assert answer.headers["Location"] == "/agents/?q="
    stored = Agent.objects.get(pk=other.pk)
    assert (stored.archived_at, stored.visibility) == (None, "groups")


def test_archives_and_restores_the_selected_agents(client, ann):
    one, two, rest = (make_agent(ann, name=name) for name in "abc")

    assert act(client, "archive", one, two).headers["Location"] == "/agents/?q="
    assert names(client) == [rest.name]
    assert names(client, "?archived=1") == ["a", "b"]
    act(client, "unarchive", two)

    assert names(client) == ["b", "c"]


def test_shares_agents_and_their_instructions_and_stops_sharing(client, ann):
    agent = make_agent(ann)
    agent.groups.add(Group.objects.create(name="team"))
    save_agent(agent, uses=[], instructions="Be kind.")

    act(client, "share", agent)

    stored = Agent.objects.get()
    assert (stored.visibility, stored.prompt.visibility) == ("everyone", "everyone")
    assert not stored.groups.exists()
    entry = AuditEntry.objects.filter(noun="agent").latest("pk")
    assert (entry.thing, entry.by) == (agent.name, "ann")
    act(client, "unshare", agent)
    stored = Agent.objects.get()
    assert (stored.visibility, stored.prompt.visibility) == ("private", "private")


def test_exports_the_selected_agents_as_one_file_that_can_be_imported(client, ann):
    one, two = make_agent(ann, name="one"), make_agent(ann, name="two")
    publish_agent(two, by=ann)

    answer = act(client, "export", one, two)

    assert answer.headers["Content-Disposition"].endswith('"agents.yaml"')
    file = parse_agentfile(answer.text)
    entries = [(row.slug, row.version) for row in file.agents]
    assert entries == [("one", None), ("two", 1)]
    entries = AuditEntry.objects.filter(noun="agent", action="exported")
    assert entries.count() == 2


def test_deletes_agents_to_which_nothing_refers_after_a_confirmation(client, ann):
    unused, used = make_agent(ann, name="unused"), make_agent(ann, name="used")
    save_agent(unused, uses=[ToolAssignment(None, "allow", used.pk)], instructions="x")
    publish_agent(unused, by=ann)

    asked = act(client, "delete", unused, used).text
    assert "Delete 1 agent?" in asked
    assert asked.index("unused") < asked.index("Not deleted") < asked.rindex("used")
    assert Agent.objects.count() == 2
    act(client, "delete", unused, used, sure="1")

    assert Agent.objects.get() == used
    assert not PromptTemplate.objects.exists()
    assert AuditEntry.objects.filter(noun="agent", action="deleted").count() == 1


@pytest.mark.parametrize("refer", [make_run, make_schedule])
def test_an_agent_with_runs_or_schedules_is_not_deleted(client, ann, refer):
    agent = make_agent(ann)
    refer(ann, agent=agent)

    act(client, "delete", agent, sure="1")

    assert "Archive it instead." in client.get("/agents/").text
    assert Agent.objects.get() == agent


def test_nothing_selected_or_an_unknown_action_changes_nothing(client, ann):
    agent = make_agent(ann)

    act(client, "archive")
    assert "Select agents of yours in the list first." in client.get("/agents/").text
    act(client, "explode", agent)
    assert "Unknown action" in client.get("/agents/").text


def test_returns_only_to_pages_of_this_site(client, ann):
    agent = make_agent(ann)

    answer = act(client, "archive", agent, here="//evil.example/")

    assert answer.headers["Location"] == "/agents/"


def test_playgrounds_cannot_be_selected(client, ann):
    hidden = make_agent(make_user("bob"), is_playground=True)
    client.force_login(make_user(is_superuser=True))

    act(client, "archive", hidden)

    assert Agent.objects.get(pk=hidden.pk).archived_at is None
