"""Versions: listed, compared, restored."""

import pytest

from runs.models import Agent
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import ToolAssignment, get_draft_token, save_agent
from runs.services.spec.inline_prompt import save_inline_prompt
from tests.make import make_agent, make_run, make_tool, make_user

pytestmark = pytest.mark.django_db


def two_versions(ann):
    """Return an agent of two versions, and a draft of a third kind."""
    agent, tool = make_agent(ann), make_tool(ann, name="look_up")
    save_agent(agent, uses=[], instructions="Be brief.\nAlways.")
    publish_agent(agent, by=ann, note="the first")
    save_agent(
        agent, uses=[ToolAssignment(tool.pk, "ask")], instructions="Be long.\nAlways."
    )
    publish_agent(agent, by=ann, note="the second")
    agent.executor = {"max_iterations": 9}
    agent.save()
    return agent


def test_lists_them_with_notes_and_compares_with_the_draft(client, ann):
    agent = two_versions(ann)

    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()

    assert "the first" in page
    assert page.index("the second") < page.index("the first")
    assert "Runs use version 2" in page
    assert "<del>15</del> → <ins>9</ins>" in page


@pytest.mark.parametrize("limit", [1, 0])
def test_a_limit_of_one_or_zero_is_compared_as_a_number(client, ann, limit):
    agent = two_versions(ann)
    agent.executor = {
        "max_iterations": limit,
        "return_intermediate_steps": True,
        "handle_parsing_errors": False,
    }
    agent.save()

    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()

    assert f"<del>15</del> → <ins>{limit}</ins>" in page
    assert "<del>No</del> → <ins>Yes</ins>" in page
    assert "<del>Yes</del> → <ins>No</ins>" in page


def test_first_instructions_are_one_change(client, ann):
    agent = make_agent(ann)
    publish_agent(agent, by=ann)
    agent.prompt = save_inline_prompt(
        agent,
        kind=agent.kind,
        fields={
            "messages": [
                {"role": "system", "template": "Be brief."},
                {"role": "user", "template": "{input}"},
            ]
        },
    )
    agent.save()

    page = client.get(f"/agents/{agent.pk}/versions/?a=1&b=draft").content.decode()

    assert "Built-in prompt of the kind" in page
    assert "Be brief." in page
    assert "Message 2" not in page


def test_compares_any_two(client, ann):
    agent = two_versions(ann)

    page = client.get(f"/agents/{agent.pk}/versions/?from=1&to=2").content.decode()

    assert '<span class="del">Be <del>brief</del>.</span>' in page
    assert '<span class="ins">Be <ins>long</ins>.</span>' in page
    assert '<span class="same">Always.</span>' in page
    assert "Tool look_up" in page
    assert "Requires approval of each call" in page


def test_what_an_agent_says_it_does_is_part_of_a_version(client, ann):
    agent = two_versions(ann)
    publish_agent(agent, by=ann)
    agent.description = "Finds the way."
    agent.save()

    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()
    assert "Description" in page
    assert "Finds the way." in page
    assert publish_agent(agent, by=ann).number == 4
    assert publish_agent(agent, by=ann).number == 4


@pytest.mark.parametrize("query", ["?from=99", "?from=x&to=²", "?from=1&to=1"])
def test_nonsense_in_the_address_is_no_error(client, ann, query):
    agent = two_versions(ann)

    assert client.get(f"/agents/{agent.pk}/versions/{query}").status_code == 200


def test_an_agent_without_versions_says_what_they_are_for(client, ann):
    agent = make_agent(ann)

    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()

    assert "Not published yet" in page


def test_a_draft_that_is_in_no_version_is_not_replaced_by_one_click(client, ann):
    agent = two_versions(ann)

    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()
    assert "Replace draft with version 1" in page
    assert "Publish the draft first" in page

    publish_agent(agent, by=ann)
    page = client.get(f"/agents/{agent.pk}/versions/").content.decode()
    assert "Replace the draft" not in page
    assert 'aria-label="Restore version 1"' in page


def test_a_draft_that_changed_behind_the_page_is_not_replaced(client, ann):
    agent = two_versions(ann)
    seen = get_draft_token(agent)
    save_agent(agent, uses=[], instructions="Written in another tab.")

    there = f"/agents/{agent.pk}/versions/1/restore/"
    answer = client.post(there, {"seen": seen}, follow=True)

    assert (
        "The draft has changed since this page was loaded." in answer.content.decode()
    )
    agent.refresh_from_db()
    assert "Written in another tab." in str(agent.prompt.messages)
    client.post(there, {"seen": get_draft_token(agent)})
    agent.refresh_from_db()
    assert "Be brief." in str(agent.prompt.messages)


def test_restores_one_into_the_draft(client, ann):
    agent = two_versions(ann)

    answer = client.post(f"/agents/{agent.pk}/versions/1/restore/")

    assert answer.headers["Location"] == f"/agents/{agent.pk}/edit/"
    assert not agent.uses.exists()
    assert Agent.objects.get().executor == {}
    assert agent.versions.count() == 2


def test_a_stranger_gets_404_and_restores_nothing(client, ann):
    agent = two_versions(make_user())

    codes = {
        client.get(f"/agents/{agent.pk}/versions/").status_code,
        client.post(f"/agents/{agent.pk}/versions/1/restore/").status_code,
    }

    assert codes == {404}
    assert agent.uses.exists()


def test_a_version_that_is_not_there_is_404(client, ann):
    agent = make_agent(ann)

    assert client.post(f"/agents/{agent.pk}/versions/7/restore/").status_code == 404


def test_shows_the_results_of_each_version_to_its_editors(client, ann):
    agent = two_versions(ann)
    make_run(ann, agent=agent, version=agent.versions.get(number=2), status="failed")

    for page in ("versions/", ""):
        answer = client.get(f"/agents/{agent.pk}/{page}")
        table = answer.content.decode().split('id="agent-version-figures"')[1]
        assert f'href="/runs/?agent={agent.pk}&amp;version=2"' in table
        assert '<td class="num">0%</td>' in table


def test_the_publish_menu_loads_what_has_changed(client, ann):
    agent = two_versions(ann)

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    part = client.get(f"/agents/{agent.pk}/versions/", headers={"HX-Request": "true"})

    menu = page.split('id="agent-publish-menu"')[1].split("</details>")[0]
    assert f'hx-get="/agents/{agent.pk}/versions/"' in menu
    assert part.content.decode().strip().startswith('<div id="agent-differences">')
    assert "<del>15</del> → <ins>9</ins>" in part.content.decode()
