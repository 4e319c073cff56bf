"""Publishing an older version again, and the undo of publishing."""

import re

import pytest

from runs.models import Experiment
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import save_agent
from tests.make import make_agent, make_tool
from tests.makers.gates import finish_experiment, make_gate
from tests.support.html import join_lines
from tools.models import Tool

pytestmark = pytest.mark.django_db
REASON = "Version 2 sends wrong refunds."


@pytest.fixture
def agent(ann):
    """An agent with two versions."""
    agent = make_agent(ann)
    for words in ("First words.", "Second words."):
        save_agent(agent, uses=[], instructions=words)
        publish_agent(agent, by=ann)
    return agent


def post(client, agent, number=1, **data):
    url = f"/agents/{agent.pk}/versions/{number}/publish/"
    return client.post(url, data, follow=True).text


def test_an_older_version_is_published_again_from_the_list(client, agent):
    versions = client.get(f"/agents/{agent.pk}/versions/").text
    assert f'href="/agents/{agent.pk}/versions/1/publish/"' in versions
    assert f'href="/agents/{agent.pk}/versions/2/publish/"' not in versions

    page = join_lines(client.get(f"/agents/{agent.pk}/versions/1/publish/").text)
    assert "Version 3 will be the same as version 1." in page
    assert 'name="reason"' not in page
    said = post(client, agent, newest="2", note="Back to the first words")

    assert "Version 3 published. Runs use it from now on." in said
    newest = agent.versions.first()
    assert (newest.number, newest.note) == (3, "Back to the first words")


def test_publishing_is_undone_by_the_version_before(client, agent):
    save_agent(agent, uses=[], instructions="Third words.")
    done = client.post(f"/agents/{agent.pk}/publish/", follow=True).text
    toast = done.split('id="part-toasts"')[1].split('id="part-lost"')[0]
    url = re.search(r'action="([^"]+)"', toast)
    fields = dict(re.findall(r'name="(newest|undo|here)" value="([^"]+)"', toast))
    assert url
    assert url[1] == f"/agents/{agent.pk}/versions/2/publish/"

    undone = client.post(url[1], fields, follow=True)
    assert undone.redirect_chain == [(f"/agents/{agent.pk}/", 302)]
    assert (
        "Publishing undone. Runs use the content of version 2 again, as version 4."
        in undone.text
    )
    assert ">Undo<" not in undone.text
    assert agent.versions.first().spec == agent.versions.get(number=2).spec

    said = client.post(url[1], fields, follow=True).text  # in another tab
    assert "Not published: runs use version 4 by now." in said
    assert agent.versions.count() == 4


def test_the_first_version_has_no_undo(client, ann):
    agent = make_agent(ann)

    page = client.post(f"/agents/{agent.pk}/publish/", follow=True).text

    assert "Version 1 published" in page
    assert ">Undo<" not in page


def test_a_gate_asks_for_a_reason(client, agent):
    make_gate(agent)
    page = client.get(f"/agents/{agent.pk}/versions/1/publish/").text
    assert "Not run with this version" in page

    said = post(client, agent, newest="2", note="Kept")
    assert "requires an experiment with version 1" in said
    said = post(client, agent, newest="2", reason="Too short", note="Kept")
    assert "Enter a reason of at least 20 characters." in said
    assert 'value="Kept"' in said
    assert "Version 3 published" in post(client, agent, newest="2", reason=REASON)


def test_the_gate_is_run_with_the_version_and_then_frees_the_form(client, agent):
    make_gate(agent)
    again = f"/agents/{agent.pk}/versions/1/publish/"
    page = client.get(again).text
    assert 'name="candidate" value="1"' in page

    run = f"/agents/{agent.pk}/publish/gate/"
    said = client.post(run, {"candidate": "1"}, follow=True)
    assert said.redirect_chain == [(again, 302)]
    assert 'hx-trigger="every 2s"' in said.text
    experiment = Experiment.objects.get()
    finish_experiment(experiment)
    part = client.get(again, headers={"HX-Request": "true"}).text

    assert 'hx-trigger="every 2s"' not in part
    assert "Gate met" in part
    assert "Publish version 3" in part.split('hx-target="#gate-decision"')[1]
    assert "Version 3 published" in post(client, agent, newest="2")
    assert agent.versions.first().gate_result["experiment"] == experiment.pk


def test_the_newest_version_is_not_published_again(client, agent):
    assert "Runs use version 2 already." in post(client, agent, 2, newest="2")
    assert agent.versions.count() == 2


def test_a_version_that_does_not_exist_is_not_found(client, agent):
    url = f"/agents/{agent.pk}/versions/9/publish/"
    assert client.post(url).status_code == 404


@pytest.mark.parametrize(
    "change", [{"approval": "always"}, {"approval": "always", "effect": "side_effect"}]
)
def test_a_version_without_an_approval_of_now_is_refused(client, ann, change):
    tool = make_tool(ann, name="refund")
    agent = make_agent(ann, tools=(tool,))
    publish_agent(agent, by=ann)
    Tool.objects.filter(pk=tool.pk).update(**change)
    agent.model = "model-b"
    agent.save()
    publish_agent(agent, by=ann)
    page = join_lines(client.get(f"/agents/{agent.pk}/versions/1/publish/").text)
    assert "Its tools are called as they were in version 1" in page

    said = post(client, agent, newest="2")

    assert "requires approval now, and version 1 calls it without" in said
    assert agent.versions.count() == 2
    Tool.objects.filter(pk=tool.pk).update(approval="never")
    assert "Version 3 published" in post(client, agent, newest="2")
