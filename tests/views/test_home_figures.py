"""The figures and charts of the home page."""

import html
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.models import Run, ScoredRun
from runs.models.run_slots import EVERYONE
from runs.services.search.index_runs import index_runs
from runs.time_zone import ZONE_COOKIE
from runs.ui.format import format_day
from runs.views.home.key_figures import draw_line
from runs.views.home.page import MIN_RUNS
from runs.views.home.period import HomePeriod, read_period
from tests.make import (
    make_agent,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
    make_version,
)
from tests.makers.scoring import end_run, make_rule, score_all
from tests.support.html import strip_tags
from tools.models import ToolUsage

pytestmark = pytest.mark.django_db

BARS = re.compile(r'<a href="/runs/(\?[^"]*)" aria-label="([^"]*)"')


def end_runs(owner, count=MIN_RUNS, *, at=None, **fields):
    """Make runs that have ended and are indexed."""
    fields = {"status": "succeeded", "agent": None, **fields}
    agent = fields.pop("agent") or make_agent(owner)
    runs = [make_run(owner, agent=agent, **fields) for _ in range(count)]
    if at is not None:
        keys = [run.pk for run in runs]
        Run.objects.filter(pk__in=keys).update(created_at=at)
    index_runs()
    return runs


def figure(page, label):
    """Return the text of one key figure."""
    part = page.split(f'<span class="tl">{label}</span>')[1].split("</a>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())


def test_figures_begin_with_the_tenth_run(client, ann):
    end_runs(ann, MIN_RUNS - 1)
    end_runs(ann, MIN_RUNS, is_test=True)
    assert "Success rate" not in client.get("/").text

    end_runs(ann, 1)

    assert "Success rate" in client.get("/").text


def test_a_figure_says_how_it_changed_since_the_week_before(client, ann):
    end_runs(ann, 20, at=timezone.now() - timedelta(days=8))
    end_runs(ann, 20, cost="0.5")
    end_runs(ann, 5, status="failed")

    page = client.get("/").text

    assert figure(page, "Runs") == "25 ▲ up 25% 20 the week before"
    assert figure(page, "Success rate") == (
        "80.0% ▼ down 20.0 points 100.0% the week before"
    )
    assert figure(page, "Cost") == "$10.00"


def test_test_runs_count_on_request_and_their_cost_always(client, ann):
    end_runs(ann, MIN_RUNS, cost="0.1")
    end_runs(ann, 200, is_test=True, status="failed", cost="0.02", source="eval")

    page = client.get("/").text

    assert figure(page, "Runs") == "10"
    assert figure(page, "Success rate") == "100.0%"
    assert figure(page, "Cost") == "$5.00"
    assert "200 runs of tests and experiments are not counted." in page
    assert "they cost $4.00" in page
    page = client.get("/?tests=1").text
    assert figure(page, "Runs") == "210"
    assert figure(page, "Success rate") == "4.8%"
    assert figure(page, "Cost") == "$5.00"
    assert "200 runs of tests and experiments are counted." in page


def test_the_list_of_the_cost_has_the_same_cost(client, ann):
    first, *_others = end_runs(ann, MIN_RUNS, cost="0.1")
    end_runs(ann, 3, is_test=True, cost="0.02")
    end_runs(ann, 1, parent_step=make_step(first), cost="0.4")
    assert figure(client.get("/").text, "Cost") == "$1.46"
    make_run(ann, status="running", cost="0.7")

    page = client.get("/").text

    assert figure(page, "Cost of ended runs") == "$1.46"
    link = page.split("Cost of ended runs")[0].rsplit('href="/runs/', 1)[1]
    query = html.unescape(link.split('"')[0])
    listed = client.get(f"/runs/figures/{query}").text
    assert "$1.46" in listed.split('<span class="tl">Cost</span>')[1].split("</div>")[0]


def test_only_the_times_of_counted_runs_are_in_the_p95(client, ann):
    now = timezone.now()
    end_runs(ann, started_at=now - timedelta(seconds=2), ended_at=now)
    long_ago = now - timedelta(hours=1)
    end_runs(ann, 30, is_test=True, started_at=long_ago, ended_at=now)

    times = [figure(client.get(url).text, "p95 time") for url in ("/", "/?tests=1")]

    assert times[0] != times[1]


def test_recent_runs_leave_out_test_runs(client, ann):
    end_runs(ann, title="A question of a customer")
    end_runs(ann, 9, is_test=True, title="An example")

    assert "A question of a customer" in client.get("/").text
    assert "An example" not in client.get("/").text
    assert "An example" not in client.get("/home/runs/").text
    assert "An example" in client.get("/home/runs/?tests=1").text


def test_agents_that_only_ran_tests_are_not_ranked(client, ann):
    end_runs(ann, agent=make_agent(ann, name="worker bee"))
    end_runs(ann, 2, agent=make_agent(ann, name="draft bee"), is_test=True)

    ranking = client.get("/").text.split('id="home-agents"')[1]
    assert "worker bee" in ranking
    assert "draft bee" not in ranking
    assert "draft bee" in client.get("/?tests=1").text.split('id="home-agents"')[1]


def test_without_prices_it_counts_tokens(client, ann):
    end_runs(ann, MIN_RUNS, input_tokens=150)

    page = client.get("/").text

    assert figure(page, "Tokens") == "1,500"
    assert "Tokens by model" in page


def test_a_period_without_runs_says_so(client, ann):
    end_runs(ann, at=timezone.now() - timedelta(days=20))

    assert "No runs in this period" in client.get("/").text
    assert figure(client.get("/?range=30d").text, "Runs").startswith("10")


def test_members_see_their_own_runs_and_administrators_those_of_everyone(client, ann):
    boss = make_user(is_superuser=True)
    end_runs(ann)
    end_runs(boss, MIN_RUNS + 1)

    assert figure(client.get("/").text, "Runs") == "10"
    client.force_login(boss)
    assert figure(client.get("/").text, "Runs") == "21"
    assert figure(client.get("/?mine=1").text, "Runs") == "11"


@pytest.mark.parametrize(
    "zone", ["UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati"]
)
def test_each_bar_counts_the_runs_that_its_link_lists(client, ann, zone):
    dice = random.Random(zone)
    agent, spec, now = make_agent(ann), make_spec(), timezone.now()
    for n in range(30):
        run = make_run(
            ann,
            agent=agent,
            spec=spec,
            title=f"Question {n} of 30",
            status=dice.choice(["succeeded", "failed", "queued"]),
        )
        began = now - timedelta(minutes=dice.randrange(5 * 24 * 60))
        Run.objects.filter(pk=run.pk).update(created_at=began)
    parent = Run.objects.latest("pk")
    make_run(ann, agent=agent, parent_step=make_step(parent), source="parent")
    index_runs()
    client.cookies[ZONE_COOKIE] = zone
    page = client.get("/").text
    bars = BARS.findall(page)

    counts = []
    for query, words in bars:
        listed = client.get(f"/runs/{html.unescape(query)}").text
        found = len(set(re.findall(r"Question \d+ of 30", listed)))
        counts.append(found)
        assert f": {found} run" in words
    assert len(bars) == 7
    assert sum(counts) == 30
    assert figure(page, "Runs").split()[0] == "30"


def test_a_bar_tells_how_many_runs_failed_and_the_most_frequent_error(client, ann):
    end_runs(ann, 8)
    end_runs(ann, 2, status="failed", error_code="auth")
    end_runs(ann, 1, status="failed", error_code="internal")

    page = client.get("/?range=24h").text

    assert ": 11 runs, 3 failed" in page
    assert "API key rejected, 2" in page


def test_models_and_agents_are_ranked(client, ann):
    agent = make_agent(ann, name="planner")
    end_runs(ann, agent=agent, cost="0.25")
    end_runs(ann, 4, status="failed", agent=agent)

    page = client.get("/").text

    assert "Cost by model" in page
    assert "$2.50" in page.split('id="home-rankings"')[1].split("</li>")[0]
    row = page.split('id="home-agents"')[1].split("<tbody>")[1]
    assert "planner" in row
    assert "71.4%" in row


def score(agent, *passed, days_ago=0):
    rule = make_rule(agent)
    for ok in passed:
        ScoredRun.objects.create(
            rule=rule,
            run=make_run(agent.owner, agent=agent, is_test=True),
            state=ScoredRun.State.DONE,
            passed=ok,
            scored_at=timezone.now() - timedelta(days=days_ago),
        )


def test_agents_have_the_score_of_their_rules_in_the_period(
    client, ann, django_assert_max_num_queries
):
    agent, plain = make_agent(ann, name="planner"), make_agent(ann, name="worker bee")
    end_runs(ann, agent=agent)
    end_runs(ann, 2, agent=plain)
    table = client.get("/").text.split('id="home-agents"')[1].split("</table>")[0]
    assert "Score" not in table

    score(agent, True, True, None)
    score(agent, True, False)
    score(agent, False, days_ago=20)
    with CaptureQueriesContext(connection) as before:
        page = client.get("/").text

    table = page.split('id="home-agents"')[1].split("</table>")[0]
    scored, other = table.split("<tbody>")[1].split("</tr>")[:2]
    assert "75.0%" in scored
    assert "3 of 4 scores passed" in scored
    assert "%</span>" not in other
    score(plain, True)
    with django_assert_max_num_queries(len(before)):
        client.get("/")


def test_names_the_tools_that_fail(client, ann):
    end_runs(ann)
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for owner, name in ((ann, "fetch_page"), (make_user(), "hidden_tool")):
        tool = make_tool(owner, name=name)
        ToolUsage.objects.create(tool=tool, hour=hour, calls=40, failures=4)

    page = client.get("/").text

    assert "fetch_page" in page
    assert "10.0%" in page
    assert "hidden_tool" not in page


def test_failures_of_all_users_are_not_among_ones_own_figures(admin_client, admin_user):
    end_runs(admin_user)
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    tool = make_tool(admin_user, name="fetch_page")
    ToolUsage.objects.create(tool=tool, hour=hour, calls=40, failures=4)

    assert "fetch_page" in admin_client.get("/").text
    assert "fetch_page" not in admin_client.get("/?mine=1").text


def read(query, zone="UTC"):
    with timezone.override(zone):
        return read_period(QueryDict(query))


def test_two_dates_are_a_period():
    period = read("begin=2026-03-28&end=2026-03-30", "Europe/Berlin")

    assert [f"{mark.astimezone(UTC):%d %H}" for mark in period.marks] == [
        "27 23",
        "28 23",  # the day has 23 hours
        "29 22",
    ]
    assert period.end == datetime(2026, 3, 30, 22, tzinfo=UTC)
    before = period.previous_slots(EVERYONE)
    assert before.begin.astimezone(UTC) == datetime(2026, 3, 24, 23, tzinfo=UTC)
    assert before.end == datetime(2026, 3, 27, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "query", ["", "range=x", "begin=nonsense", "begin=2999-01-01", "end=2026-01-01"]
)
def test_anything_else_is_the_last_seven_days(query):
    period = read(query)

    assert (period.name, len(period.marks), period.end) == ("7d", 7, None)


def test_the_time_before_ends_at_the_same_time_of_the_day():
    period: HomePeriod = read("range=24h", "Asia/Kathmandu")
    before = period.previous_slots(EVERYONE)

    assert len(period.marks) == 24
    assert period.begin.minute == 0
    assert period.begin - before.begin == timedelta(hours=24)
    assert timezone.now() - before.end < timedelta(hours=24, minutes=15)


def test_a_line_leaves_out_days_without_a_value():
    assert draw_line([1.0, None, 3.0]) == "0.0 92.0 100.0 8.0"
    assert draw_line([None, 3.0]) == ""


def test_shows_scores_of_rules_by_day_if_there_are_some(client, ann):
    agent = make_agent(ann)
    end_runs(ann, agent=agent)
    make_rule(agent)
    before = client.get("/").text
    for output in ("yes", "no"):
        end_run(agent, output)
    score_all()

    page = client.get("/").text
    assert 'id="home-scores"' not in before
    assert "1 passed, 1 failing" in page
    day = timezone.localdate()
    assert f'href="/rules/runs/?day={day}#rule-runs"' in page
    first = format_day(day - timedelta(days=29))
    assert f"<span>{first}</span>" in page.split('id="home-scores"')[1]
    assert f"{format_day(day)}: 1 passed" in page
    ann.is_superuser = True
    ann.save()
    mine = client.get("/?mine=1").text
    assert f'href="/rules/runs/?day={day}&amp;mine=1#rule-runs"' in mine


def test_rules_by_which_the_newest_version_is_worse_come_first(client, ann):
    fell, rose = make_agent(ann, name="Planner"), make_agent(ann, name="Helper")
    end_runs(ann, agent=fell)
    outputs = {fell: ("yes", "no"), rose: ("no", "yes")}
    for agent, texts in outputs.items():
        make_rule(agent, name=f"Watch {agent.name}")
        for text in texts:
            version = make_version(agent)
            end_run(agent, text, version=version, spec=version.spec)
    assert score_all()

    page = " ".join(strip_tags(client.get("/").text).split())

    assert "Watch Planner Planner 2 0% 0% – 79% 1: 100.0% −100" in page
    assert "Watch Helper Helper 2 100.0% 21% – 100% 1: 0% +100" in page
    assert page.index("Watch Planner") < page.index("Watch Helper")


def test_a_rule_that_only_the_newest_version_has_says_nothing_of_a_change(client, ann):
    agent = make_agent(ann)
    end_runs(ann, agent=agent)
    make_rule(agent, name="Old rule")
    for text in ("yes", "yes"):
        version = make_version(agent)
        end_run(agent, text, version=version, spec=version.spec)
    assert score_all()
    make_rule(agent, name="Strict rule")
    end_run(agent, "no", version=version, spec=version.spec)
    assert score_all()

    page = " ".join(strip_tags(client.get("/").text).split())

    assert re.search(r"Old rule \S+ \S+ 2 50.0% [^:]+ 1: 100.0% −50", page)
    strict = page[page.index("Strict rule") : page.index("Recent runs")]
    assert "1:" not in strict
