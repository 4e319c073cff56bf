"""Agents: list, page, run form, publishing."""

import pytest

from runs.models import Agent, AgentTool, Run
from tests.make import (
    make_agent,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_shows_the_list_and_hides_what_is_someone_elses(client, ann):
    make_agent(ann, name="planner")
    make_agent(name="stranger-bot")

    page = client.get("/agents/").content.decode()

    assert "planner" in page
    assert "stranger-bot" not in page


def test_counts_only_runs_one_may_see(client, ann):
    agent = make_agent(name="shared", visibility="everyone")
    make_run(agent.owner, agent=agent)
    make_run(ann, agent=agent)

    assert "1 run, " in client.get("/agents/").content.decode()


def test_the_page_asks_for_the_variables_of_the_prompt(client, ann):
    prompt = make_prompt(
        ann, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent = make_agent(ann, prompt=prompt)

    page = client.get(f"/agents/{agent.pk}/").content.decode()

    assert 'name="input"' in page
    assert 'name="in-city"' in page


def test_the_times_of_its_schedules_have_their_zone(client, ann):
    schedule = make_schedule(ann, cron="0 7 * * *", time_zone="Asia/Shanghai")

    page = client.get(f"/agents/{schedule.agent_id}/").content.decode()

    assert (
        'Every day at 07:00</span>\n          <span class="faint">Asia/Shanghai' in page
    )


def test_a_run_starts_with_what_was_typed_and_its_page_opens(client, ann):
    prompt = make_prompt(
        ann, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent = make_agent(ann, prompt=prompt)

    answer = client.post(
        f"/agents/{agent.pk}/run/", {"input": "What to see", "in-city": "北京"}
    )

    run = Run.objects.get()
    assert answer.headers["Location"] == f"/runs/{run.pk}/"
    assert run.inputs == {"input": "What to see", "city": "北京"}
    assert run.owner == ann


def test_a_missing_input_is_named_and_the_rest_kept(client, ann):
    prompt = make_prompt(
        ann, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent = make_agent(ann, prompt=prompt)

    answer = client.post(f"/agents/{agent.pk}/run/", {"input": "Keep me"})

    assert answer.status_code == 200
    assert "required" in answer.content.decode()
    assert "Keep me" in answer.content.decode()
    assert not Run.objects.exists()


def test_an_agent_that_cannot_run_says_why_instead(client, ann):
    broken = make_prompt(ann, kind="react", template="{input}")
    agent = make_agent(ann, kind="react", prompt=broken)

    page = client.post(f"/agents/{agent.pk}/run/", {"input": "x"}).content.decode()

    assert "{agent_scratchpad}" in page
    assert not Run.objects.exists()


def test_who_may_see_an_agent_may_run_it(client, ann):
    agent = make_agent(visibility="everyone")

    client.post(f"/agents/{agent.pk}/run/", {"input": "x"})

    assert Run.objects.get().owner == ann


def test_a_stranger_gets_404_everywhere(client, ann):
    pk = make_agent().pk

    codes = {
        client.get(f"/agents/{pk}/").status_code,
        client.get(f"/agents/{pk}/edit/").status_code,
        client.post(f"/agents/{pk}/run/", {"input": "x"}).status_code,
        client.post(f"/agents/{pk}/publish/").status_code,
        client.post(f"/agents/{pk}/duplicate/").status_code,
        client.post(f"/agents/{pk}/archive/").status_code,
    }

    assert codes == {404}
    assert not Run.objects.exists()


def test_who_may_only_use_it_cannot_edit_or_publish_it(client, ann):
    pk = make_agent(visibility="everyone").pk

    assert client.get(f"/agents/{pk}/edit/").status_code == 404
    assert client.post(f"/agents/{pk}/publish/").status_code == 404


@pytest.mark.parametrize("visibility", ["private", "everyone"])
def test_only_what_a_person_may_see_is_a_link(client, ann, visibility):
    eve = make_user("eve")
    provider = make_provider(eve, visibility=visibility)
    prompt = make_prompt(eve, name="Polite", visibility=visibility)
    agent = make_agent(eve, visibility="everyone", provider=provider, prompt=prompt)

    page = client.get(f"/agents/{agent.pk}/").text
    urls = [f"/providers/{provider.pk}/", f"/prompts/{prompt.pk}/"]

    assert provider.name in page
    assert prompt.name in page
    is_shared = visibility == "everyone"
    assert [f'href="{url}"' in page for url in urls] == [is_shared] * 2
    assert {client.get(url).status_code for url in urls} == {200 if is_shared else 404}


def test_publishing_makes_a_version_that_runs_use(client, ann):
    agent = make_agent(ann)

    client.post(f"/agents/{agent.pk}/publish/", {"note": "first"})
    client.post(f"/agents/{agent.pk}/run/", {"input": "x"})

    version = agent.versions.get()
    assert (version.number, version.note, version.by) == (1, "first", ann)
    assert Run.objects.get().version == version


def test_the_draft_of_a_published_agent_runs_as_a_test(client, ann):
    agent = make_agent(ann)
    client.post(f"/agents/{agent.pk}/publish/")

    client.post(f"/agents/{agent.pk}/run/", {"input": "x", "draft": "on"})

    run = Run.objects.get()
    assert (run.version, run.is_test) == (None, True)


def test_what_a_draft_is_made_of_is_not_taken_for_the_version_that_runs(client, ann):
    agent = make_agent(ann)
    client.post(f"/agents/{agent.pk}/publish/")
    same = client.get(f"/agents/{agent.pk}/").content.decode()
    Agent.objects.filter(pk=agent.pk).update(model="another")

    changed = client.get(f"/agents/{agent.pk}/").content.decode()

    assert "Draft, changed since version 1" in changed
    assert "Draft, changed since" not in same


def test_an_archived_agent_cannot_be_run(client, ann):
    agent = make_agent(ann)
    client.post(f"/agents/{agent.pk}/archive/")

    page = client.post(f"/agents/{agent.pk}/run/", {"input": "x"}).content.decode()

    assert "archived" in page
    assert not Run.objects.exists()


def test_a_copy_is_ones_own(client, ann):
    agent = make_agent(
        name="shared", visibility="everyone", provider=make_provider(ann)
    )

    client.post(f"/agents/{agent.pk}/duplicate/")

    copy = Agent.objects.get(owner=ann)
    assert (copy.name, copy.visibility) == ("shared (copy)", "private")


def test_says_so_where_no_agent_fits(client, ann):
    make_agent(ann, name="planner")

    assert "No matching agents" in client.get("/agents/?q=zebra").content.decode()


def test_names_the_agents_that_call_it_as_far_as_one_may_see_them(client, ann):
    agent, caller = make_agent(ann), make_agent(ann, name="Caller")
    hidden = make_agent(make_user(), name="Hidden caller")
    for one in (caller, hidden):
        AgentTool.objects.create(agent=one, sub_agent=agent)

    page = client.get(f"/agents/{agent.pk}/").content.decode()
    card = page.split('id="agent-used-by"')[1].split("</section>")[0]

    assert f'href="/agents/{caller.pk}/">Caller</a>' in card
    assert "Hidden caller" not in card
    assert "1 agent of other users" in card
    assert (
        'id="agent-used-by"' not in client.get(f"/agents/{caller.pk}/").content.decode()
    )
