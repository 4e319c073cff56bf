"""The first page."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Agent, Run
from runs.services.bootstrap import bootstrap
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from runs.ui.format import format_day
from runs.views.charts.chart import BASE, TOP
from runs.views.charts.durations import fit_log_scale
from runs.views.home import MAX_ROWS, list_first_steps
from tests.make import (
    make_agent,
    make_decision,
    make_provider,
    make_run,
    make_step,
    make_tool,
    make_user,
    make_worker,
)
from tools.models import ToolUsage

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


def test_shows_only_the_moving_part_to_htmx(client, ann):
    make_run(ann)

    part = text(client, **{"HX-Request": "true"})

    assert part.strip().startswith('<div id="home-now"')


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


def test_groups_failures_since_yesterday(client, ann):
    agent = make_agent(ann)
    for _ in range(3):
        make_run(ann, agent=agent, status="failed", error_message="Key refused.")
    old = timezone.now() - timedelta(days=3)
    make_run(ann, status="failed", error_message="Long ago.", ended_at=old)

    page = text(client).split("Failures in the last 24 hours")[1]

    assert page.count("Key refused.") == 1
    assert "Long ago." not in page


def test_shows_the_label_of_an_error_code(client, ann):
    make_run(ann, status="failed", error_code="auth", error_message="Wrong key.")

    page = part_of(text(client), "home-failures")

    assert "API key rejected" in page
    assert ">auth<" not in page


def test_draws_the_outcomes_of_the_week(client, ann):
    make_run(ann, status="succeeded")
    make_run(ann, status="failed")
    make_run(make_user(), status="failed")
    index_runs()

    page = text(client)

    assert "1 succeeded or canceled, 1 failed, 0 reached a limit" in page
    assert f"{format_day(timezone.now())}: 1 run failed" in page
    assert "50.0% failed" in page


def test_adds_up_cost_and_tokens_by_agent(client, ann):
    agent = make_agent(ann, name="planner")
    for status in ("succeeded", "failed"):
        make_run(ann, agent=agent, status=status, input_tokens=600, cost="0.2500")
    index_runs()

    page = text(client)

    assert "$0.50" in part_of(page, "home-spending-cost")
    assert ">$0.80</text>" in part_of(page, "home-spending-cost")  # its axis ends near
    assert "1,200" in part_of(page, "home-spending-tokens")
    assert "no model has a price" not in page
    row = page.split('id="home-agents"')[1].split("</section>")[0]
    assert "planner" in row
    assert "50.0%" in row


def test_without_prices_it_counts_tokens(client, ann):
    make_run(ann, status="succeeded", input_tokens=1_500)
    index_runs()

    assert "no model has a price" in text(client)


def test_names_the_tools_that_fail(client, ann):
    make_run(ann)
    tool = make_tool(ann, name="fetch_page")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    ToolUsage.objects.create(tool=tool, hour=hour, calls=40, failures=4)
    others = make_tool(make_user(), name="hidden_tool")
    ToolUsage.objects.create(tool=others, hour=hour, calls=40, failures=4)

    page = text(client)

    assert "fetch_page" in page
    assert "10.0%" in page
    assert f"{format_day(hour)}: 4 of 40 failed" in part_of(page, "home-tools")
    assert "hidden_tool" not in page


def test_the_charts_are_of_one_agent_where_one_is_chosen(client, ann):
    one, other = make_agent(ann, name="planner"), make_agent(ann, name="reader")
    make_run(ann, agent=one, status="failed", input_tokens=600)
    make_run(ann, agent=other, status="succeeded", input_tokens=70)
    index_runs()

    every = text(client)
    page = text(client, f"?agent={one.pk}")

    assert "670" in part_of(every, "home-spending-tokens")
    assert "600" in part_of(page, "home-spending-tokens")
    assert "0 succeeded or canceled, 1 failed" in part_of(page, "home-outcomes")
    assert "reader" in part_of(page, "home-agents")
    assert "670" in part_of(text(client, "?agent=99"), "home-spending-tokens")


def part_of(page, name):
    """Return one card of the page."""
    return page.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_first_steps_can_be_sent_away(client, ann):
    make_run(ann, agent=make_agent(ann, provider=make_provider(ann, kind="demo")))
    form = '<form method="post" action="/first-steps/hide/">'
    assert "First steps" in text(client)
    assert form in text(client)

    client.post("/first-steps/hide/")

    assert "First steps" not in text(client)
    assert form in text(client)
    client.post("/first-steps/hide/", {"show": "1"})
    assert "First steps" in text(client)


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


def test_says_how_many_of_the_runs_now_are_listed(client, ann):
    for _ in range(MAX_ROWS + 1):
        make_run(ann, status="running")
    make_run(ann)

    page = text(client).split('id="home-running"')[1].split("</section>")[0]

    assert f'<span class="count">{MAX_ROWS + 2}</span>' in page
    assert "9 running · 1 queued" in page
    assert f"Showing {MAX_ROWS} of {MAX_ROWS + 2}" in page


def test_the_last_runs_stand_in_the_order_of_the_times_shown(client, ann):
    now = timezone.now()
    long = make_run(ann, status="succeeded", title="Long", ended_at=now)
    quick = make_run(ann, status="succeeded", title="Quick", ended_at=now)
    Run.objects.filter(pk=long.pk).update(created_at=now - timedelta(hours=2))
    Run.objects.filter(pk=quick.pk).update(created_at=now - timedelta(hours=1))

    last = text(client).split('id="home-last"')[1].split("</section>")[0]

    assert last.index("Quick") < last.index("1 h ago") < last.index("Long")
    assert last.index("Long") < last.index("2 h ago")


def test_questions_stand_as_in_the_inbox_the_nearest_end_first(client, ann):
    for tool, hours in (("endless", None), ("later", 5), ("sooner", 1)):
        run = make_run(ann, status="awaiting_approval")
        step = make_step(run, tool=tool, status="awaiting_approval")
        ends = timezone.now() + timedelta(hours=hours) if hours else None
        make_decision(step, expires_at=ends)

    for page in (text(client), client.get("/approvals/").content.decode()):
        places = [page.index(f">{tool}<") for tool in ("sooner", "later", "endless")]
        assert places == sorted(places)


def test_one_slow_run_leaves_the_usual_ones_legible(client, ann):
    now = timezone.now()
    for seconds in (16, 18, 4000):
        begun = now - timedelta(seconds=seconds)
        make_run(ann, status="succeeded", started_at=begun, ended_at=now)
    index_runs()

    page = text(client).split('id="home-durations"')[1].split("</section>")[0]

    assert all(f">{tick}</text>" in page for tick in ("10 s", "10 min", "10 h"))
    assert "median 17 s" in page
    assert "95% within 1 h 8 min" in page


def test_the_axis_of_durations_ends_around_what_it_shows():
    fast, wide = fit_log_scale([0.01]), fit_log_scale([0.5, 400_000])

    assert [tick.word for tick in fast.ticks()] == ["0.1 s", "1 s"]
    assert fast.get_y(0.01) == BASE
    assert wide.get_y(400_000) == TOP


def test_an_idle_page_is_sent_again_only_with_something_new(client, ann):
    make_run(ann, status="succeeded")
    page = text(client)
    state = page.split('"X-List-State": "')[1].split('"')[0]
    known = {"HX-Request": "true", "X-List-State": state}
    assert client.get("/", headers=known).status_code == 204

    make_worker()
    make_run(ann, status="running", title="Is it raining?")

    assert "Is it raining?" in text(client, **known)


def test_a_question_that_waits_wakes_an_idle_page(client, ann):
    make_run(ann, status="succeeded")
    state = text(client).split('"X-List-State": "')[1].split('"')[0]
    run = make_run(ann, status="awaiting_approval")
    make_decision(make_step(run, tool="refund", status="awaiting_approval"))

    part = text(client, **{"HX-Request": "true", "X-List-State": state})
    assert "Approval required" in part


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
