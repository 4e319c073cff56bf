"""The first page."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs.models import Agent, Run
from runs.services.bootstrap import bootstrap
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.runs.resume import resume_run
from runs.views.home.activity import MAX_ACTIVE_ROWS, MAX_ROWS
from runs.views.home.first_steps import list_first_steps
from tests.make import (
    fit,
    make_agent,
    make_decision,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_user,
    make_webhook,
    make_worker,
)
from tests.makers.experiments import make_examples, make_revision

pytestmark = pytest.mark.django_db


def text(client, query="", **headers):
    return client.get(f"/{query}", headers=headers).content.decode()


def test_a_newcomer_is_given_the_demo_agent_to_run(client, ann):
    agent = make_agent(ann, name="planner", provider=make_provider(ann, kind="demo"))

    page = text(client)

    assert "No runs yet" in page
    assert f'action="/agents/{agent.pk}/run/"' in page


def test_another_question_for_the_demo_is_one_link_away(client, ann):
    make_agent(ann, provider=make_provider(ann, kind="demo"))

    assert "Reykjavík and plan" in text(client, "?try=reykjavik").split("<textarea")[1]
    assert "Plan a day out in Beijing" in text(client, "?try=x").split("<textarea")[1]


def test_without_agents_it_says_what_a_run_needs(client, ann):
    assert "A run needs a provider and an agent" in text(client)


def test_shows_runs_now_and_the_last_ones(client, ann):
    make_run(ann, status="running", title="Going on")
    make_run(ann, status="succeeded", title="Done with")

    page = text(client)

    assert page.index("Going on") < page.index("Done with")


def test_hides_what_is_someone_elses(client, ann):
    make_run(make_user(), status="failed", title="Secret", error_message="Hidden why")
    make_run(ann)

    page = text(client)

    assert "Secret" not in page
    assert "Hidden why" not in page


def test_names_what_needs_a_person(client, ann):
    run = make_run(ann, status="awaiting_approval", title="Refund?")
    make_decision(make_step(run, tool="refund", status="awaiting_approval"))

    page = text(client)

    assert "Needs attention" in page
    assert "refund" in page


def test_an_agent_of_ones_own_is_a_step_done_also_with_the_demo_model(ann):
    demo = make_provider(ann, kind="demo")
    make_agent(ann, provider=demo, slug="travel-planner")
    assert "Build an agent" not in done_by(ann)

    make_agent(ann, provider=demo)

    assert "Build an agent" in done_by(ann)


def done_by(user):
    return [step.title for step in list_first_steps(user) if step.is_done]


def test_says_when_no_worker_lives(client, ann):
    assert "No worker is running" in text(client)


def test_says_how_many_workers_live(client, ann):
    make_worker()

    assert "1 worker, idle, queue empty" in text(client)


def test_the_health_part_is_a_part(client, ann):
    part = client.get("/parts/health/").content.decode()

    assert part.strip().startswith('<a class="health')


def test_a_called_agents_run_stands_on_its_callers_page(client, ann):
    parent = make_run(ann, title="Plan a trip", status="waiting")
    step = make_step(parent, status="started", attempts=1)
    make_run(ann, title="Oslo?", parent_step=step, source="parent")

    page = client.get("/").content.decode()

    assert "Plan a trip" in page
    assert "Oslo?" not in page


def test_the_demo_agents_are_steps_until_each_was_tried(client):
    bootstrap()
    user = User.objects.get()
    client.force_login(user)
    agent = Agent.objects.get(slug="hasty-planner")
    make_run(user, agent=agent, status="limit_reached", stop_reason="iterations")

    page = text(client)

    for words in ("Approve a call", "Resume a run", "Fork a failed run"):
        assert words in page
    assert f'href="/agents/{agent.pk}/"' in page
    resume_run(Run.objects.get(), by=user, limits={"max_iterations": 5})
    assert "Resume its run" not in text(client)


def test_questions_stand_as_in_the_inbox_the_nearest_end_first(client, ann):
    for tool, hours in (("endless", None), ("later", 5), ("sooner", 1)):
        run = make_run(ann, status="awaiting_approval")
        step = make_step(run, tool=tool, status="awaiting_approval")
        ends = timezone.now() + timedelta(hours=hours) if hours else None
        make_decision(step, expires_at=ends)

    for page in (text(client), client.get("/approvals/").content.decode()):
        places = [page.index(f">{tool}<") for tool in ("sooner", "later", "endless")]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("accepted", "question"),
    [("en-US,en;q=0.9", "Plan a day out in Beijing"), ("zh-CN,zh;q=0.9", "北京")],
)
def test_the_first_question_is_in_the_language_of_the_browser(
    client, ann, accepted, question
):
    make_agent(ann, name="planner", provider=make_provider(ann, kind="demo"))
    page = text(client, **{"Accept-Language": accepted})

    assert question in page.split("<textarea")[1].split("</textarea>")[0]


def part_of(page, name):
    """Return one card of the page."""
    return page.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_first_steps_can_be_folded_and_reopened(client, ann):
    make_run(ann, agent=make_agent(ann, provider=make_provider(ann, kind="demo")))
    assert '<details class="card b12 first-steps" id="home-steps" open>' in text(client)

    client.post("/first-steps/hide/")

    assert 'first-steps" id="home-steps">' in text(client)
    client.post("/first-steps/hide/", {"show": "1"})
    assert 'id="home-steps" open>' in text(client)


def test_done_steps_fold_to_one_line(client, ann):
    agent = make_agent(ann)
    make_run(ann, agent=agent)
    assert "3 of 4 done" in text(client)
    create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(agent)],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(),
    )

    page = text(client)

    assert "First steps: 4 of 4 done" in page
    assert 'first-steps" id="home-steps">' in page


def test_active_runs_leave_room_for_ended_ones(client, ann):
    for _ in range(MAX_ACTIVE_ROWS + 2):
        make_run(ann, status="running")
    make_run(ann)
    for _ in range(MAX_ROWS):
        make_run(ann, status="succeeded")

    card = part_of(text(client), "home-runs")

    assert f"{MAX_ACTIVE_ROWS + 2} running" in card
    assert "1 queued" in card
    assert card.count('id="home-run-') == MAX_ROWS


@pytest.mark.parametrize("statement", range(1, 10))
def test_a_run_that_ends_while_the_card_is_built_is_ended_after_the_next_poll(
    client, ann, statement
):
    run = make_run(ann, status="running")
    statements = []

    def end_run(execute, sql, *args):
        statements.append(sql)
        if len(statements) == statement:
            ended = fit("succeeded", timezone.now())
            ended |= {"status": "succeeded", "lease_until": None}
            Run.objects.filter(pk=run.pk).update(**ended)
        return execute(sql, *args)

    with connection.execute_wrapper(end_run):
        card = client.get("/home/runs/").content.decode()
    known = re.search(r'X-List-State": "([^"]*)"', card)
    headers = {"X-List-State": known[1]} if known else {}
    polled = client.get("/home/runs/", headers=headers)

    assert Run.objects.get().is_over
    assert card.count(f'id="home-run-{run.pk}"') == 1
    assert 'data-status="succeeded"' in (polled.content.decode() or card)


def test_an_idle_card_notices_that_a_run_was_approved(client, ann):
    make_run(ann, status="succeeded")
    run = make_run(ann, status="awaiting_approval")
    card = client.get("/home/runs/").content.decode()
    known = re.search(r'X-List-State": "([^"]*)"', card)
    headers = {"X-List-State": known[1]}
    assert client.get("/home/runs/", headers=headers).status_code == 204

    Run.objects.filter(pk=run.pk).update(
        status="running", **fit("running", timezone.now())
    )

    assert "1 running" in client.get("/home/runs/", headers=headers).content.decode()


def test_equal_questions_are_one_row_with_a_count(client, ann):
    for tool in ("refund", "refund", "send"):
        run = make_run(ann, status="awaiting_approval")
        make_decision(make_step(run, tool=tool, status="awaiting_approval"))

    card = part_of(text(client), "home-attention")

    assert card.count("<li ") == 2
    assert '<span class="count">2</span>' in card
    assert '<span class="count" data-tone="need">3</span>' in card
    assert 'href="/approvals/?q=refund"' in card


def test_nothing_that_needs_attention_is_no_card(client, ann):
    make_run(ann)

    assert "Needs attention" not in text(client)


def test_a_schedule_whose_last_run_failed_needs_attention(client, ann):
    run = make_run(ann, status="failed", error_message="Key refused.")
    make_schedule(ann, name="Morning report", last_run=run)
    make_schedule(ann, name="Switched off", last_run=run, next_at=None)

    page = text(client)

    assert "The last run of Morning report failed" in page
    assert "Key refused." in page
    assert "Switched off" not in page


def test_a_webhook_whose_deliveries_fail_needs_attention(client, ann):
    make_run(ann)
    since = timezone.now() - timedelta(hours=1)
    make_webhook(ann, name="Pager", failing_since=since)
    make_webhook(ann, name="Paused pager", failing_since=since, is_on=False)
    make_webhook(ann, name="Retried pager", failing_since=timezone.now())
    make_webhook(make_user("ben"), name="Other pager", failing_since=since)

    page = text(client)

    assert "Deliveries to the webhook Pager fail" in page
    assert "Paused pager" not in page
    assert "Retried pager" not in page
    assert "Other pager" not in page


def test_an_update_of_the_figures_leaves_messages_for_the_next_page(client, ann):
    for _ in range(10):
        make_run(ann, status="succeeded")
    client.post(f"/agents/{make_agent(ann).pk}/archive/")

    update = client.get("/", headers={"HX-Request": "true"}).text

    assert update.lstrip().startswith('<div id="home-period"')
    assert "archived." not in update
    assert "archived." in text(client)


def test_parts_are_sent_again_only_with_something_new(client, ann):
    make_run(ann, status="succeeded")
    page = text(client)
    known = {
        f"/home/{part}/": page.split(f'hx-get="/home/{part}/')[1]
        .split('"X-List-State": "')[1]
        .split('"')[0]
        for part in ("attention", "runs")
    }

    def poll():
        return {
            client.get(url, headers={"X-List-State": state}).status_code
            for url, state in known.items()
        }

    assert poll() == {204}
    run = make_run(ann, status="awaiting_approval", title="Refund?")
    make_decision(make_step(run, tool="refund", status="awaiting_approval"))
    assert poll() == {200}
