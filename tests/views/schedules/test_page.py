"""The pages of schedules: the list, one of them, and what its buttons do."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Provider, Run, Schedule
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from runs.views.schedules import page as schedules
from tests.make import (
    make_agent,
    make_provider,
    make_run,
    make_schedule,
    make_user,
    make_version,
)

HTMX = {"headers": {"HX-Request": "true"}}
VERBS = ["pause", "resume", "run", "delete"]


def test_the_list_shows_times_and_the_last_run(client: Client, ann):
    schedule = make_schedule(ann, name="Morning news", cron="0 9 * * 1-5")
    run = make_run(agent=schedule.agent, schedule=schedule, status="failed")
    Schedule.objects.update(last_run=run)
    page = client.get("/schedules/").text

    assert "Morning news" in page
    assert "Monday to Friday at 09:00" in page
    assert f"/runs/{run.pk}/" in page
    assert "Failed" in page


def test_the_navigation_links_to_schedules(client: Client, ann):
    page = client.get("/schedules/new/").text

    link = r'<a href="/schedules/" class="folds"\s+data-jump="s"\s+'
    here = link + r'aria-current="page">Schedules\b'
    assert re.search(here, page)


def test_the_list_is_served_as_a_part(client: Client, ann):
    make_schedule(ann)

    answer = client.get("/schedules/", **HTMX)

    assert answer.text.lstrip().startswith('<div id="schedule-list"')


def test_an_empty_list_explains_schedules(client: Client, ann):
    assert "No schedules yet" in client.get("/schedules/").text


@pytest.mark.django_db
def test_a_disabled_owner_shows_at_once(client: Client):
    eve, root = make_user("eve"), make_user("root", is_superuser=True)
    agent, soon = make_agent(eve), timezone.now() + timedelta(minutes=5)
    make_schedule(root, name="A works", next_at=soon)
    paused = make_schedule(eve, agent=agent, name="C paused", next_at=None)
    active = make_schedule(
        eve, agent=agent, name="B active", next_at=soon + timedelta(minutes=5)
    )
    client.force_login(root)
    assert "Owner disabled" not in client.get("/schedules/").text

    eve.is_active = False
    eve.save()

    page = client.get("/schedules/").text
    assert page.count("Owner disabled") == 1
    assert page.index("B active") < page.index("A works") < page.index("C paused")
    sentence = "Starts no runs: the account of its owner is disabled."
    detail = client.get(f"/schedules/{active.pk}/").text
    assert sentence in detail
    assert 'id="schedule-coming"' not in detail
    assert sentence not in client.get(f"/schedules/{paused.pk}/").text
    assert "Owner disabled" in client.get(f"/agents/{agent.pk}/").text


def test_schedules_with_a_problem_come_first_and_paused_ones_last(client: Client, ann):
    soon = timezone.now() + timedelta(minutes=5)
    make_schedule(ann, name="C paused", next_at=None)
    make_schedule(ann, name="B soon", next_at=soon)
    late = soon + timedelta(days=1)
    make_schedule(ann, name="A late", next_at=late, problem="No.", problem_at=soon)
    page = client.get("/schedules/").text

    places = [page.index(name) for name in ("A late", "B soon", "C paused")]
    assert places == sorted(places)
    assert "Could not start: No." in page


def test_the_list_shows_own_schedules_and_superusers_see_owners(client: Client, ann):
    make_schedule(make_user("bob", first_name="Bob", last_name="Bo"), name="Bob's own")

    assert "Bob&#x27;s own" not in client.get("/schedules/").text
    client.force_login(make_user("root", is_superuser=True))
    page = client.get("/schedules/").text
    assert "Bob&#x27;s own" in page
    assert "Bob Bo" in page


def test_a_long_list_says_how_many_are_not_shown(
    client: Client, ann, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(schedules, "MAX_SCHEDULES", 2)
    for _ in range(5):
        make_schedule(ann)

    assert (
        "Showing the first 2 schedules; 3 more are due later."
        in client.get("/schedules/").text
    )


@pytest.mark.parametrize("many", [1, 6])
def test_a_longer_list_needs_no_more_queries(
    client: Client, ann, many: int, django_assert_max_num_queries
):
    for _ in range(many):
        schedule = make_schedule(ann)
        run = make_run(agent=schedule.agent, schedule=schedule, status="failed")
        Schedule.objects.filter(pk=schedule.pk).update(last_run=run)

    with django_assert_max_num_queries(4):
        client.get("/schedules/", **HTMX)


def test_a_page_shows_the_next_times_in_its_zone(client: Client, ann):
    due = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)
    schedule = make_schedule(
        ann, cron="30 7 * * *", time_zone="Asia/Shanghai", next_at=due
    )
    page = client.get(f"/schedules/{schedule.pk}/").text

    assert "Mon 23 Nov 2026, 07:30" in page
    assert "Fri 27 Nov 2026, 07:30" in page
    assert page.count(", 07:30</span>") == 5
    assert "Asia/Shanghai" in page
    assert "Every day at 07:30" in page
    assert "What is new?" in page


def test_the_changing_part_is_served_alone(client: Client, ann):
    schedule = make_schedule(ann)

    answer = client.get(f"/schedules/{schedule.pk}/", **HTMX)

    assert answer.text.lstrip().startswith('<div id="schedule-now"')


def test_a_page_shows_its_runs_and_links_to_all_of_them(client: Client, ann):
    schedule = make_schedule(ann)
    other = make_run(ann, title="Of another")
    run = make_run(agent=schedule.agent, schedule=schedule, title="Of this one")
    page = client.get(f"/schedules/{schedule.pk}/").text

    assert "Of this one" in page
    assert "Of another" not in page
    listed = client.get(f"/runs/?schedule={schedule.pk}").text
    assert f"/runs/{run.pk}/" in listed
    assert f"/runs/{other.pk}/" not in listed
    assert f"/runs/{run.pk}/" in client.get("/runs/?schedule=any").text
    assert f"/runs/{other.pk}/" not in client.get("/runs/?schedule=any").text
    assert f"/runs/{other.pk}/" in client.get("/runs/?schedule=nonsense").text


def test_a_page_shows_problem_missed_and_skipped_times(client: Client, ann):
    now = timezone.now()
    schedule = make_schedule(
        ann, problem="The agent is archived.", problem_at=now, last_at=now
    )
    Schedule.objects.update(missed=3, skipped=1)
    page = client.get(f"/schedules/{schedule.pk}/").text

    assert "The agent is archived." in page
    assert "3 earlier times were missed" in page
    assert "1 run skipped" in page
    Schedule.objects.update(missed=1000)
    assert "1,000 or more" in client.get(f"/schedules/{schedule.pk}/").text


def refused_schedule(owner, agent):
    now = timezone.now()
    return make_schedule(owner, agent=agent, problem="It cannot run.", problem_at=now)


def test_a_problem_links_to_the_page_that_fixes_it(client: Client, ann):
    agent = make_agent(ann, provider=make_provider(ann))
    schedule = refused_schedule(ann, agent)
    page = client.get(f"/schedules/{schedule.pk}/").text
    problem = page.split('id="schedule-problem"')[1].split("</section>")[0]
    assert f'href="/agents/{agent.pk}/#agent-versions">Publish a version' in problem

    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    problem = client.get(f"/schedules/{schedule.pk}/").text
    assert f'href="/schedules/{schedule.pk}/edit/">Edit the schedule' in problem

    Provider.objects.update(archived_at=timezone.now())
    problem = client.get(f"/schedules/{schedule.pk}/").text
    assert f'href="/providers/{agent.provider_id}/">Open the provider' in problem
    assert f'href="/agents/{agent.pk}/">Open the agent' in problem
    assert "Edit the schedule" not in problem


def test_fix_links_skip_pages_one_may_not_see(client: Client, ann):
    agent = make_agent(make_user())
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    schedule = refused_schedule(ann, agent)

    page = client.get(f"/schedules/{schedule.pk}/").text

    assert "Open the agent" not in page
    assert "Edit the schedule" in page


def test_a_schedule_with_an_unknown_zone_is_shown(client: Client, ann):
    schedule = make_schedule(ann, time_zone="Mars/Olympus")

    assert client.get(f"/schedules/{schedule.pk}/").status_code == 200


def test_a_schedule_is_paused_and_resumed(client: Client, ann):
    schedule = make_schedule(ann)
    client.post(f"/schedules/{schedule.pk}/pause/")
    assert not Schedule.objects.get().is_on
    assert "Resume" in client.get(f"/schedules/{schedule.pk}/").text

    client.post(f"/schedules/{schedule.pk}/resume/")
    assert Schedule.objects.get().is_on


def test_a_schedule_that_is_never_due_cannot_be_resumed(client: Client, ann):
    schedule = make_schedule(ann, cron="0 0 30 2 *", next_at=None)
    answer = client.post(f"/schedules/{schedule.pk}/resume/", follow=True)

    assert "No date matches this" in answer.text


def test_run_now_redirects_to_a_run_that_names_its_schedule(client: Client, ann):
    schedule = make_schedule(ann, name="Morning news")
    answer = client.post(f"/schedules/{schedule.pk}/run/", follow=True)

    run = Run.objects.get()
    assert answer.redirect_chain == [(f"/runs/{run.pk}/", 302)]
    link = f'by the schedule <a href="/schedules/{schedule.pk}/">Morning news</a>'
    assert link in answer.text


def test_run_now_explains_a_refusal(client: Client, ann):
    schedule = make_schedule(ann)
    client.post(f"/schedules/{schedule.pk}/run/")
    answer = client.post(f"/schedules/{schedule.pk}/run/", follow=True)

    assert "has not ended" in answer.text
    assert Run.objects.count() == 1


def test_a_run_of_a_deleted_schedule_still_names_a_schedule(client: Client, ann):
    run = make_run(ann, source="schedule")

    assert "by a schedule" in client.get(f"/runs/{run.pk}/").text


def test_deleting_asks_for_confirmation_and_keeps_the_runs(client: Client, ann):
    schedule = make_schedule(ann)
    run = make_run(agent=schedule.agent, schedule=schedule)

    assert "Its 1 run is kept" in client.get(f"/schedules/{schedule.pk}/delete/").text
    assert Schedule.objects.exists()
    client.post(f"/schedules/{schedule.pk}/delete/")
    assert not Schedule.objects.exists()
    assert Run.objects.get() == run


@pytest.mark.parametrize("verb", ["", "edit/"])
def test_strangers_get_404(client: Client, ann, verb: str):
    other = make_schedule()

    assert client.get(f"/schedules/{other.pk}/{verb}").status_code == 404


@pytest.mark.parametrize("verb", VERBS)
def test_a_stranger_changes_nothing(client: Client, ann, verb: str):
    other = make_schedule()

    assert client.post(f"/schedules/{other.pk}/{verb}/").status_code == 404
    assert Schedule.objects.get() == other
    assert not Run.objects.exists()


def test_users_of_an_agent_see_no_schedules_of_others(client: Client, ann):
    schedule = make_schedule(make_user("bob"), name="Bob's own")
    schedule.agent.visibility = "everyone"
    schedule.agent.save()

    page = client.get(f"/agents/{schedule.agent_id}/").text

    assert "Bob&#x27;s own" not in page
    assert f"/schedules/new/?agent={schedule.agent_id}" in page


def test_the_page_of_an_agent_shows_its_schedules(client: Client, ann):
    schedule = make_schedule(ann, name="Morning news")

    page = client.get(f"/agents/{schedule.agent_id}/").text

    assert "Morning news" in page
    assert "Every day at 09:00" in page


def test_archiving_an_agent_names_its_active_schedules(client: Client, ann):
    schedule = make_schedule(ann)
    make_schedule(agent=schedule.agent, next_at=None)
    path = f"/agents/{schedule.agent_id}/archive/"

    assert "1 schedule will start no more runs" in client.post(path, follow=True).text


def test_home_shows_schedules_that_could_not_start(client: Client, ann):
    now = timezone.now()
    make_run(ann)
    make_schedule(ann, name="Bad", problem="It is archived.", problem_at=now)
    make_schedule(name="Of another", problem="No.", problem_at=now)
    page = client.get("/").text

    assert "It is archived." in page
    assert "Of another" not in page


def test_the_last_time_is_in_the_schedules_zone(client: Client, ann):
    last = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)
    schedule = make_schedule(ann, time_zone="Asia/Shanghai", last_at=last)

    facts = client.get(f"/schedules/{schedule.pk}/").text.split("Last time")[1]

    assert "Sat 21 Nov 2026, 07:00" in facts
    assert "Asia/Shanghai" in facts
