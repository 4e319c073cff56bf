"""The draft is saved as one types: what can be stored is, and no later one is lost."""

import re

import pytest

from runs.models import Agent
from runs.services.agents.save import ToolAssignment, get_draft_token, save_agent
from runs.services.spec.inline_prompt import extract_instructions
from tests.make import make_agent, make_tool

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


def typed(agent, **changes):
    return {
        "name": agent.name,
        "kind": agent.kind,
        "provider": agent.provider_id,
        "model": agent.model,
        "source": "write",
        "instructions": "Plan a day.",
        "max_iterations": "15",
        "early_stopping_method": "force",
        "parsing": "tell",
        "loop_guard": "on",
        "visibility": "private",
        "seen": get_draft_token(agent),
    } | changes


def save(client, agent, **changes):
    """Save as the page does; return the part that comes back."""
    answer = client.post(
        f"/agents/{agent.pk}/save/", typed(agent, **changes), headers=HX
    )
    assert answer.status_code == 200
    return answer.content.decode()


def test_what_is_typed_is_stored_and_the_part_brings_the_next_token(client, ann):
    agent = make_agent(ann)

    part = save(client, agent, name="renamed", temperature="0.5")

    stored = Agent.objects.get()
    assert re.match(r'<div class="state grow"\s+id="agent-state"', part.strip())
    assert f'value="{get_draft_token(stored)}"' in part
    assert (stored.name, stored.parameters) == ("renamed", {"temperature": 0.5})
    assert extract_instructions(stored.prompt) == "Plan a day."


def test_a_field_with_a_mistake_keeps_what_is_stored(client, ann):
    agent = make_agent(ann, executor={"max_iterations": 7}, parameters={"seed": 1})

    part = save(client, agent, name="new", max_iterations="-1", more="{")

    stored = Agent.objects.get()
    assert stored.name == "new"
    assert stored.executor["max_iterations"] == 7
    assert stored.parameters == {"seed": 1}
    assert 'data-mistake="max_iterations">Enter 1 or more' in part
    assert "Not saved, fix below: Other parameters, Rounds" in part


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"model": ""}, "model", id="no model"),
        pytest.param({"max_iterations": "999999999"}, "max_iterations", id="rounds"),
        pytest.param({"budget_cost": "nan"}, "budget_cost", id="no number"),
        pytest.param({"output_schema": "[]"}, "output_schema", id="schema"),
        pytest.param({"provider": "999999"}, "provider", id="provider"),
        pytest.param({"kind": "psychic"}, "kind", id="kind"),
        pytest.param({"visibility": "groups"}, "visibility", id="no group"),
        pytest.param({"name": "x" * 500}, "name", id="long name"),
    ],
)
def test_each_mistake_is_reported_at_its_field(client, ann, changes, field):
    agent = make_agent(ann, executor={"max_iterations": 7})
    before = Agent.objects.values("name", "model", "kind", "provider").get()

    part = save(client, agent, **changes)

    assert f'data-mistake="{field}"' in part
    assert Agent.objects.values("name", "model", "kind", "provider").get() == before


def test_a_half_written_prompt_is_kept_and_flagged(client, ann):
    agent = make_agent(ann)

    part = save(client, agent, instructions="Plan a day in {cit")

    assert extract_instructions(Agent.objects.get().prompt) == "Plan a day in {cit"
    assert 'data-mistake="instructions"' in part
    assert "Saved with errors." in part


def test_the_later_of_two_tabs_is_warned_instead_of_overwriting(client, ann):
    agent = make_agent(ann)
    save(client, agent, name="first tab")

    part = save(client, agent, name="second tab")

    assert Agent.objects.get().name == "first tab"
    assert "A later draft was saved" in part
    assert f'name="over" value="{get_draft_token(Agent.objects.get())}"' in part


def test_it_stays_refused_until_one_decides(client, ann):
    agent = make_agent(ann)
    save(client, agent, name="first tab")
    part = save(client, agent, name="second tab")
    seen = part.split('name="seen" value="')[1].split('"')[0]

    again = save(client, agent, name="second tab", seen=seen)
    blind = save(client, agent, name="second tab", seen="")

    assert "A later draft was saved" in again
    assert "A later draft was saved" in blind
    assert Agent.objects.get().name == "first tab"


def test_the_later_tab_can_overwrite_with_open_eyes(client, ann):
    agent = make_agent(ann)
    save(client, agent, name="first tab")
    over = get_draft_token(Agent.objects.get())

    answer = client.post(
        f"/agents/{agent.pk}/edit/", typed(agent, name="second tab", over=over)
    )

    assert answer.status_code == 302
    assert Agent.objects.get().name == "second tab"


def test_without_a_script_the_later_tab_is_warned_too(client, ann):
    agent = make_agent(ann)
    save(client, agent, name="first tab")

    answer = client.post(f"/agents/{agent.pk}/edit/", typed(agent, name="second tab"))

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "A later draft was saved" in page
    assert 'value="second tab"' in page
    assert Agent.objects.get().name == "first tab"


def test_tools_and_agents_are_stored_with_their_permissions(client, ann):
    agent, tool = make_agent(ann), make_tool(ann)
    helper = make_agent(ann)
    foreign = make_agent()
    uses = {f"tool-{tool.pk}": "ask", f"agent-{helper.pk}": "allow"}

    save(client, agent, **uses, **{f"agent-{foreign.pk}": "allow"})

    found = {(use.tool, use.sub_agent, use.policy) for use in agent.uses.all()}
    assert found == {(tool, None, "ask"), (None, helper, "allow")}


def test_an_agent_that_would_call_itself_is_refused_and_the_rest_stored(client, ann):
    agent, helper = make_agent(ann), make_agent(ann)
    save_agent(helper, uses=[ToolAssignment(None, "allow", agent.pk)], instructions="")

    part = save(client, agent, name="stored", **{f"agent-{helper.pk}": "allow"})

    assert "cannot call itself" in part
    assert not agent.uses.exists()
    assert Agent.objects.get(pk=agent.pk).name == "stored"


def test_what_differs_from_the_published_version_is_counted(client, ann):
    agent = make_agent(ann)
    client.post(f"/agents/{agent.pk}/publish/")

    same = save(client, agent, instructions="")
    changed = {"name": "renamed", "loop_guard": ""}
    part = save(client, Agent.objects.get(), instructions="", **changed)

    assert "Same as version 1" in same
    assert "data-published" in same
    assert "data-published" not in part
    assert "2 changes since version 1" in part


def test_a_strangers_draft_is_not_there(client, ann):
    agent = make_agent(visibility="everyone")

    answer = client.post(f"/agents/{agent.pk}/save/", typed(agent))

    assert answer.status_code == 404


def test_publishing_what_was_not_seen_is_refused(client, ann):
    agent = make_agent(ann)
    seen = get_draft_token(agent)
    save(client, agent, name="later")

    client.post(f"/agents/{agent.pk}/publish/", {"seen": seen})

    assert not agent.versions.exists()


def test_after_a_conflict_the_publish_form_sends_the_refused_draft(client, ann):
    agent = make_agent(ann)
    save(client, agent, name="first tab")
    part = save(client, agent, name="second tab")
    [seen] = re.findall(r'name="seen" value="(.*?)" form="agent-publish"', part)

    client.post(f"/agents/{agent.pk}/publish/", {"seen": seen})
    client.post(f"/agents/{agent.pk}/publish/", {"seen": ""})

    assert seen == get_draft_token(agent)
    assert not agent.versions.exists()


@pytest.mark.parametrize("over", [True, False])
def test_without_a_script_a_mistake_does_not_overwrite_a_later_draft(client, ann, over):
    agent = make_agent(ann)
    save(client, agent, name="first tab")
    token = get_draft_token(Agent.objects.get())
    sent = typed(agent, name="second tab", temperature="99")

    page = client.post(
        f"/agents/{agent.pk}/edit/", sent | ({"over": token} if over else {})
    ).content.decode()

    seen = token if over else get_draft_token(agent)
    assert f'name="seen" value="{seen}" form="agent-form"' in page
    assert ("A later draft was saved" in page) is not over
    assert ("Not saved. Fix the errors below." in page) is over
    assert Agent.objects.get().name == "first tab"


def test_a_tool_that_was_changed_on_its_own_page_is_not_put_back(client, ann):
    tool = make_tool(ann)
    agent = make_agent(ann, tools=(tool,))
    client.post(
        f"/agents/{agent.pk}/tools/{tool.pk}/", {"policy": "deny", "return_direct": ""}
    )

    part = save(client, agent, **{f"tool-{tool.pk}": "allow"})

    assert "A later draft was saved" in part
    assert agent.uses.get().policy == "deny"


def test_a_limit_of_a_tool_that_is_not_published_is_counted(client, ann):
    tool = make_tool(ann, retries=2)
    agent = make_agent(ann, tools=(tool,))
    client.post(f"/agents/{agent.pk}/publish/")
    client.post(
        f"/agents/{agent.pk}/tools/{tool.pk}/", {"policy": "default", "retries": "1"}
    )

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    assert "1 change since version 1" in page
    assert "data-published" not in page


def test_what_only_the_provider_changed_can_be_published(client, ann):
    agent = make_agent(ann)
    client.post(f"/agents/{agent.pk}/publish/")
    agent.provider.stream = not agent.provider.stream
    agent.provider.save()

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    own = client.get(f"/agents/{agent.pk}/").content.decode()

    assert "Same as version 1, but its provider or a tool has changed" in page
    assert "data-published" not in page
    assert "Publish version 2" in own
