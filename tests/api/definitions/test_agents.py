"""Agents and their versions through the API."""

import pytest
from django.contrib.auth.models import Group

from runs.models import Agent, PromptTemplate
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_provider, make_run, make_tool, make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_an_agent_is_created_published_and_run():
    ann = make_user()
    make_provider(ann, slug="local")
    make_tool(ann, slug="pay", name="pay")
    api = Api(ann, scopes=["read", "run", "build"])

    made = api.post(
        "agents",
        {
            "name": "Travel planner",
            "provider": "local",
            "model": "m",
            "instructions": "Plan a trip to {city}.",
            "tools": [{"tool": "pay", "policy": "ask"}],
            "executor": {"max_iterations": 5},
        },
    )
    agent = made.json()
    published = api.post(f"agents/{agent['id']}/publish", {"note": "first"}).json()
    run = api.post(
        "runs",
        {
            "agent": agent["slug"],
            "version": 1,
            "inputs": {"city": "Lima", "input": "?"},
        },
    )

    assert made.status_code == 201
    assert agent["draft"]["instructions"] == "Plan a trip to {city}."
    assert agent["draft"]["tools"] == [
        {"tool": "pay", "agent": None, "policy": "ask", "overrides": {}}
    ]
    assert (published["number"], published["is_new"]) == (1, True)
    assert (run.status_code, run.json()["version"]) == (201, 1)


def test_a_change_leaves_the_rest_as_it_is():
    ann = make_user()
    agent = make_agent(ann, tools=(make_tool(ann, name="pay"),), memory=True)
    api = Api(ann, scopes=["read", "build"])
    before = api.get(f"agents/{agent.pk}").json()

    after = api.patch(f"agents/{agent.pk}", {"description": "New."}).json()

    assert after["description"] == "New."
    changed = {"description", "updated_at"}
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in before.items() if k not in changed
    }


def test_a_change_of_what_has_changed_since_is_refused():
    ann = make_user()
    agent = make_agent(ann, name="First")
    api = Api(ann, scopes=["read", "build"])
    seen = api.get(f"agents/{agent.pk}").headers["ETag"]
    path = f"agents/{agent.pk}"

    first = api.patch(path, {"name": "Second"}, If_Match=seen)
    late = api.patch(path, {"name": "Third"}, If_Match=seen)
    again = api.patch(path, {"name": "Third"}, If_Match=first.headers["ETag"])

    assert (first.status_code, again.status_code) == (200, 200)
    assert (late.status_code, fields_of(late)) == (412, ["If-Match"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"provider": "nobodys"}, "provider"),
        ({"kind": "magic"}, "kind"),
        ({"prompt": "nobodys"}, "prompt"),
        ({"prompt": "a", "instructions": "b"}, "prompt"),
        ({"tools": [{"tool": "nobodys"}]}, "tools.0.tool"),
        ({"tools": [{"agent": "nobodys"}]}, "tools.0.agent"),
        ({"tools": [{"tool": "pay"}, {"tool": "pay"}]}, "tools.1"),
        ({"visibility": "groups", "groups": ["strangers"]}, "groups"),
        ({"visibility": "groups"}, "groups"),
        ({"groups": ["crew"]}, "groups"),
        ({"executor": {"max_iterations": -1}}, "executor.max_iterations"),
        ({"instructions": "{input"}, "instructions"),
        ({"name": "a\0b"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_refused_change_names_its_field_and_changes_nothing(body, field):
    ann = make_user()
    Group.objects.create(name="strangers")
    make_tool(ann, slug="pay", name="pay")
    agent = make_agent(ann, name="First")
    stamp = Agent.objects.get().updated_at

    answer = Api(ann, scopes=["build"]).patch(
        f"agents/{agent.pk}", {"description": "New.", **body}
    )

    assert (answer.status_code, fields_of(answer)[0]) == (422, field)
    agent.refresh_from_db()
    assert (agent.description, agent.updated_at) == ("", stamp)
    assert not agent.uses.exists()


def test_an_agent_is_shared_with_a_group_of_its_owner():
    ann = make_user()
    ann.groups.add(Group.objects.create(name="crew"))
    agent = make_agent(ann)
    api = Api(ann, scopes=["build"])

    shared = api.patch(
        f"agents/{agent.pk}", {"visibility": "groups", "groups": ["crew"]}
    )
    private = api.patch(f"agents/{agent.pk}", {"visibility": "private"})

    assert shared.json()["groups"] == ["crew"]
    assert (private.json()["groups"], agent.groups.count()) == ([], 0)


def test_others_see_a_shared_agent_without_its_draft():
    agent = make_agent(visibility="everyone")
    api = Api(make_user(), scopes=["read", "build"])

    assert api.get(f"agents/{agent.pk}").json()["draft"] is None
    refused = api.patch(f"agents/{agent.pk}", {"name": "Mine"})
    assert (refused.status_code, fields_of(refused)) == (403, ["id"])


def test_a_version_is_compared_and_restored():
    ann = make_user()
    agent = make_agent(ann, description="Old.")
    api = Api(ann, scopes=["read", "build"])
    api.post(f"agents/{agent.pk}/publish")
    api.patch(f"agents/{agent.pk}", {"description": "New."})

    found = api.get(f"agents/{agent.pk}/versions/1/compare").json()["data"]
    restored = api.post(f"agents/{agent.pk}/versions/1/restore").json()

    assert [(one["before"], one["after"]) for one in found] == [("Old.", "New.")]
    assert restored == {"warnings": []}
    assert api.get(f"agents/{agent.pk}").json()["is_published"]


def test_an_older_version_is_published_again():
    ann = make_user()
    agent = make_agent(ann)
    api = Api(ann, scopes=["read", "build"])
    for words in ("Old.", "New."):
        api.patch(f"agents/{agent.pk}", {"description": words})
        api.post(f"agents/{agent.pk}/publish")
    url = f"agents/{agent.pk}/versions/1/publish"

    made = api.post(url, {"newest": 2, "note": "Back"})
    stale = api.post(url, {"newest": 2})
    missing = api.post(url, {})

    assert (made.json()["number"], made.json()["note"]) == (3, "Back")
    assert made.headers["Location"].endswith("/versions/3")
    assert stale.status_code == 409
    assert "runs use version 3 by now" in stale.text
    assert missing.status_code == 422
    assert "newest" in missing.text


def test_only_agents_without_runs_are_deleted():
    ann = make_user()
    used, unused = make_agent(ann), make_agent(ann)
    make_run(agent=used)
    api = Api(ann, scopes=["build"])

    assert api.delete(f"agents/{used.pk}").status_code == 409
    assert api.delete(f"agents/{unused.pk}").status_code == 204
    assert Agent.objects.get() == used


def test_a_file_is_imported_as_a_whole_or_not_at_all():
    exported = make_agent(slug="planner")
    text = Api(exported.owner).get(f"agents/{exported.pk}/export").text
    entry = AuditEntry.objects.get(action="exported")
    assert (entry.noun, entry.by, entry.way) == (
        "agent",
        exported.owner.username,
        "api",
    )
    bob = Api(make_user(), scopes=["build"])
    file = "agentfile: 1\nprompts: [{slug: hi, template: 'Hi {input}'}]\n"

    refused = bob.post("agents/import", {"file": text})
    done = bob.post("agents/import", {"file": file})

    assert (refused.status_code, Agent.objects.get()) == (422, exported)
    assert done.json()["created"] == ["prompt template hi"]


def test_the_instructions_of_an_agent_are_unshared_with_it():
    ann = make_user()
    agent = make_agent(ann)
    api = Api(ann, scopes=["build"])
    body = {"visibility": "everyone", "instructions": "Be kind."}
    api.patch(f"agents/{agent.pk}", body)
    assert PromptTemplate.objects.get().visibility == "everyone"

    api.patch(f"agents/{agent.pk}", {"visibility": "private"})

    assert PromptTemplate.objects.get().visibility == "private"


def test_changed_overrides_of_a_tool_are_audited():
    ann = make_user("ann")
    tool = make_tool(ann, slug="pay", name="pay", timeout=30)
    agent = make_agent(ann, tools=(tool,))
    use = {"tool": "pay", "overrides": {"timeout": 5}}
    api = Api(ann, scopes=["build"])

    for _ in range(2):
        answer = api.patch(f"agents/{agent.pk}", {"tools": [use]})

    assert answer.status_code == 200
    assert agent.uses.get().overrides == {"timeout": 5}
    [entry] = AuditEntry.objects.filter(noun="agent tool", action="changed")
    assert (entry.by, list(entry.changes)) == ("ann", ["overrides.timeout"])
