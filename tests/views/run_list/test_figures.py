"""The figures above the list, and the counts beside its filters."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from runs.models import Run, RunTag
from runs.services.search import run_sample
from runs.services.search.index_runs import index_runs
from runs.views.run_list import filter_queries
from tests.make import make_agent, make_run, make_step, make_user
from tests.support.html import join_lines, strip_tags

pytestmark = pytest.mark.django_db


def figures(client, query=""):
    return join_lines(client.get(f"/runs/figures/{query}").content.decode())


def count_beside(page, label):
    """Return the number beside a choice."""
    found = re.search(rf'title="{label}">[^<]*</span><span class="num">([^<]*)<', page)
    return found and found[1]


def test_adds_up_the_runs_that_match(client, ann):
    make_run(ann, status="succeeded", cost="0.5")
    make_run(ann, status="failed", cost="0.25")
    make_run(ann, status="running")
    make_run(make_user(), status="failed", cost="9")
    index_runs()

    page = figures(client)

    tiles = re.findall(r"<b>([^<]*)</b><small[^>]*>([^&]*)&nbsp;", page)
    assert tiles[0] == ("3", "1 unfinished")
    assert tiles[1] == ("50.0%", "1 failed")
    assert tiles[4] == ("$0.7500", "$0.2500 per run")
    assert re.search(r"<b>1</b>", figures(client, "?status=failed"))


def end_run(ann, *, hours_ago, seconds=1.0, **fields):
    start = timezone.now() - timedelta(hours=hours_ago)
    fields.setdefault("status", "succeeded")
    run = make_run(ann, ended_at=start + timedelta(seconds=seconds), **fields)
    Run.objects.filter(pk=run.pk).update(created_at=start, started_at=start)


def read_changes(client, query):
    """Return what stands below each figure, without spaces."""
    strip = figures(client, query).split('id="run-figures"')[1].split("<figure")[0]
    notes = re.findall(r"<small.*?</small>", strip, re.DOTALL)
    return [re.sub(r"\s", "", strip_tags(note)) for note in notes]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_period_is_compared_with_the_one_before(client, ann, is_named):
    end_run(ann, hours_ago=1, seconds=8, cost="0.5")
    end_run(ann, hours_ago=1, seconds=2, status="failed", cost="0.25")
    end_run(ann, hours_ago=2, seconds=2)
    for hours_ago in (30, 40):
        end_run(ann, hours_ago=hours_ago, seconds=3, cost="0.5")
    end_run(ann, hours_ago=60, status="failed")
    index_runs()
    now = timezone.now().replace(tzinfo=None)
    begin, end = (now - timedelta(days=1)).isoformat()[:16], now.isoformat()[:16]

    changes = read_changes(
        client, "?since=1d" if is_named else f"?begin={begin}&end={end}"
    )

    assert changes == [
        "▲up50%",
        "▲up33.3points",
        "▼down1.0s",
        "▲up5.0s",
        "▼down25%",
    ]


@pytest.mark.parametrize(
    "query", ["", "?begin=2001-01-01", "?begin=0002-01-01&end=9998-01-01", "?since=1h"]
)
def test_nothing_is_compared_without_a_period_or_runs_before(client, ann, query):
    end_run(ann, hours_ago=0.5)
    end_run(ann, hours_ago=30)
    index_runs()

    assert not any("▲" in one or "▼" in one for one in read_changes(client, query))


def test_a_sample_is_not_compared(client, ann, monkeypatch):
    end_run(ann, hours_ago=1, seconds=8)
    for hours_ago in (30, 40):
        end_run(ann, hours_ago=hours_ago)
    index_runs()
    assert read_changes(client, "?since=1d")[0] == "▼down50%"
    monkeypatch.setattr(run_sample, "MAX_SAMPLED_RUNS", 1)

    assert not re.search("[▲▼]", "".join(read_changes(client, "?since=1d")))


def test_a_period_that_lasts_is_compared_with_the_same_part_before(client, ann):
    for hours_ago in (1, 2, 13, 14, 15, 18, 21):
        end_run(ann, hours_ago=hours_ago)
    index_runs()
    # a minute earlier: the first run counts even if a minute has begun since
    now = timezone.now() - timedelta(minutes=1)
    times = [now + timedelta(hours=hours) for hours in (-3, 9)]
    begin, end = (time.replace(tzinfo=None).isoformat()[:16] for time in times)

    changes = read_changes(client, f"?begin={begin}&end={end}")

    assert changes[0] == "▼down33%"  # 2, after 3 in the first 3 hours before


def test_a_sort_compares_ended_runs_with_ended_runs(client, ann):
    end_run(ann, hours_ago=1)
    end_run(ann, hours_ago=30)
    running = make_run(ann, status="running")
    start = timezone.now() - timedelta(hours=30)
    Run.objects.filter(pk=running.pk).update(created_at=start)
    index_runs()

    assert "%" not in read_changes(client, "?since=1d&sort=cost")[0]
    assert read_changes(client, "?since=1d")[0] == "▼down50%"


def test_a_sorted_list_counts_its_choices_without_the_sort(client, ann):
    make_run(ann, status="succeeded")
    make_run(ann, status="running")
    make_run(ann, status="running", is_test=True)
    index_runs()

    page = figures(client, "?sort=seconds")

    assert count_beside(page, "Running") == "1"
    assert count_beside(page, "Succeeded") == "1"
    assert count_beside(page, "With test runs") == "3"
    assert re.search(r'<span class="tl">Runs</span><b>1</b>', page)


def test_a_search_of_the_latest_runs_only_is_not_compared(client, ann, monkeypatch):
    monkeypatch.setattr(filter_queries, "MAX_COMPARED_RUNS", 3)
    for hours_ago in (40, 35, 2, 1, 30):
        end_run(ann, hours_ago=hours_ago, output="Oslo")
    index_runs()

    assert read_changes(client, "?since=1d&q=oslo")[0] == "▼down33%"
    assert not re.search("[▲▼]", "".join(read_changes(client, "?since=1d&q=o")))


def test_a_count_is_of_the_list_that_its_choice_leads_to(client, ann):
    agent, other = make_agent(ann, name="planner"), make_agent(ann, name="scout")
    make_run(ann, agent=agent, status="succeeded")
    make_run(ann, agent=agent, status="failed", error_code="timeout")
    parent = make_run(ann, agent=other, status="succeeded")
    step = make_step(parent, tool="look_up")
    make_run(ann, agent=agent, parent_step=step, source="parent", status="canceled")
    RunTag.objects.create(run=parent, name="new")
    index_runs()

    page = figures(client, "?status=succeeded")

    assert count_beside(page, "Succeeded") == "2"
    assert count_beside(page, "Failed") == "1"
    assert count_beside(page, "Canceled") == "0"
    assert count_beside(page, "planner") == "1"
    assert count_beside(page, "look_up") == "1"
    assert count_beside(page, "new") == "1"
    assert count_beside(figures(client), "planner") == "3"
    assert count_beside(figures(client, f"?agent={other.pk}"), "planner") == "3"


def test_never_counts_what_is_someone_elses(client, ann):
    bob = make_user("bob")
    run = make_run(bob, agent=make_agent(bob, name="secret"), status="succeeded")
    make_step(run, tool="hidden_tool")
    RunTag.objects.create(run=run, name="private")
    index_runs()

    page = figures(client, f"?agent={run.agent_id}&user={bob.pk}&tag=private")

    assert "<b>0</b>" in page
    assert "secret" not in page
    assert "bob" not in page
    assert "hidden_tool" not in page
    assert count_beside(page, "private") == "0"


def test_a_long_list_is_counted_up_to_a_limit_which_is_named(client, ann, monkeypatch):
    agent = make_agent(ann, name="planner")
    for status in ("succeeded", "failed", "failed"):
        make_run(ann, agent=agent, status=status)
    for module in ("services.search.run_sample", "views.run_list.figures"):
        monkeypatch.setattr(f"runs.{module}.MAX_SAMPLED_RUNS", 2)
    monkeypatch.setattr("runs.views.run_list.facets.MAX_SAMPLED_RUNS", 2)

    page = figures(client)

    assert "<b>2+</b>" in page
    assert "Figures of the latest 2" in page
    assert count_beside(page, "Failed") == "2+"
    assert count_beside(page, "Succeeded") == ""


def refuse_samples(execute, sql, *arguments):
    """End the queries that count, as the time limit of the database does."""
    if "LIMIT 10001" in sql:
        raise OperationalError("canceling statement due to statement timeout")
    return execute(sql, *arguments)


def test_figures_that_take_long_are_left_out(client, ann):
    make_run(ann)

    with connection.execute_wrapper(refuse_samples):
        page = figures(client)

    assert "Too many runs to count" in page
    assert count_beside(page, "Succeeded") == ""
    assert "Too many runs to count" in page.split('id="run-facet-tool"')[1]
    assert "Loading" not in page


def refuse_unsorted_samples(execute, sql, *arguments):
    return (
        execute if "runs_runsearchrow" in sql else partial(refuse_samples, execute)
    )(sql, *arguments)


def test_choices_of_a_sorted_list_that_take_long_are_not_counted(client, ann):
    make_run(ann, status="succeeded")
    index_runs()

    with connection.execute_wrapper(refuse_unsorted_samples):
        page = figures(client, "?sort=cost")

    assert re.search(r'<span class="tl">Runs</span><b>1</b>', page)
    assert count_beside(page, "Succeeded") == ""
    assert "Too many runs to count" in page.split('id="run-facet-tool"')[1]
    assert "Loading" not in page


def test_the_page_has_the_figures_without_a_script(client, ann):
    make_run(ann, status="succeeded")
    page = join_lines(client.get("/runs/?status=succeeded").content.decode())
    link = re.search(r'href="([^"]*figures=1)"', page)[1].replace("&amp;", "&")

    with_figures = join_lines(client.get(f"/runs/{link}").content.decode())

    assert "<b>1</b>" in with_figures
    assert count_beside(with_figures, "Succeeded") == "1"


def test_takes_the_same_few_queries_however_many_runs(
    client, ann, django_assert_max_num_queries
):
    for _ in range(10):
        make_run(ann, status="succeeded")
    index_runs()

    # Two of them end the time limit, which only the transaction of a test needs.
    with django_assert_max_num_queries(28):
        figures(client)


def test_ratings_are_counted_among_the_runs_that_match_the_other_filters(client, ann):
    for status, rating in (("failed", -1), ("failed", 1), ("failed", None)):
        make_run(ann, status=status, rating=rating)
    make_run(ann, status="succeeded", rating=1)
    index_runs()

    page = figures(client, "?status=failed&rating=good")

    counts = [
        count_beside(page, label) for label in ("Rated or not", "Bad", "Good", "Rated")
    ]
    assert counts == ["3", "1", "1", "2"]
    assert re.search(r'name="rating" value="good" checked', page)


def all_matching(page):
    """Return the words of the box for all matching runs, and whether it is off."""
    label = page.partition('id="run-all-matching"')[2].partition("</label>")[0]
    return " ".join(strip_tags(label.partition(">")[2]).split()), " disabled" in label


def test_the_box_for_all_matching_runs_has_their_number(client, ann):
    make_run(ann, status="failed")
    for _ in range(2):
        make_run(ann, status="succeeded")

    assert all_matching(figures(client)) == ("All 3 matching runs", False)
    assert all_matching(figures(client, "?status=failed")) == ("1 matching run", False)
    page = join_lines(client.get("/runs/?figures=1").content.decode())
    assert all_matching(page) == ("All 3 matching runs", False)
    page = join_lines(client.get("/runs/").content.decode())
    assert all_matching(page) == ("All matching runs", False)


def test_too_many_matching_runs_cannot_be_selected(client, ann, monkeypatch):
    module = "runs.views.run_list.figures.MAX_SELECTED_RUNS"
    monkeypatch.setattr(module, 2)
    for _ in range(3):
        make_run(ann, status="succeeded")

    words, is_off = all_matching(figures(client))

    assert is_off
    assert words == "3 runs match, at most 2 can be selected at once"
