"""Test runs and those of experiments: left out of the list until it is asked."""

import html
import re

import pytest
from django.contrib.auth.models import User

from runs.models import Run, SavedFilter
from runs.services.search.index_runs import index_runs
from tests.api.make_client import Api
from tests.make import make_agent, make_run, make_step, make_user
from tests.support.html import join_lines
from tests.views.test_home_figures import end_runs

pytestmark = pytest.mark.django_db


def titles(client, query: str = "") -> list[str]:
    """Return the runs of the list, sorted by their titles."""
    page = client.get(f"/runs/{query}").text.split('id="run-list"')[1]
    return sorted(re.findall(r">((?:Real|Test) \w+)<", page))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("", ["Real one"], id="usually"),
        pytest.param("?tests=without", ["Real one"], id="without"),
        pytest.param("?tests=with", ["Real one", "Test one"], id="with"),
        pytest.param("?tests=only", ["Test one"], id="only"),
        pytest.param("?status=failed", ["Real one"], id="with another filter"),
        pytest.param("?q=one", ["Real one"], id="searched"),
        pytest.param("?q=one&tests=only", ["Test one"], id="searched among tests"),
    ],
)
def test_the_list_has_real_runs_unless_it_is_asked(client, ann, query, found):
    for title in ("Real one", "Test one"):
        is_test = title == "Test one"
        inputs = {"input": title}
        make_run(ann, status="failed", title=title, inputs=inputs, is_test=is_test)
    Run.objects.update(indexed=False)
    index_runs()

    assert titles(client, query) == found


def test_a_test_run_is_found_by_its_number(client, ann):
    run = make_run(ann, title="Test one", is_test=True)

    assert titles(client, f"?q={run.pk}") == ["Test one"]
    assert titles(client, f"?q={run.pk}&tests=without") == ["Test one"]


def test_a_test_run_that_needs_a_person_is_shown(client, ann):
    make_run(ann, status="awaiting_approval", title="Test one", is_test=True)

    assert titles(client, "?status=needs") == ["Test one"]
    assert titles(client, "?status=needs&tests=without") == []
    assert titles(client, "?status=unfinished") == []


def test_a_count_of_tests_stands_beside_the_choice_and_on_the_chip(client, ann):
    make_run(ann, status="succeeded")
    for _ in range(3):
        make_run(ann, status="succeeded", is_test=True)
    index_runs()

    page = join_lines(client.get("/runs/figures/").text)

    counts = re.findall(
        r'<input type="radio" name="tests" value="(\w+)"( checked)? ?>.*?'
        r'<span class="num">(\d+)<',
        page,
    )
    assert counts == [
        ("without", " checked", "1"),
        ("with", "", "4"),
        ("only", "", "3"),
    ]
    assert '<span class="num" id="run-test-count">3</span>' in page
    assert re.search(r"<b>([^<]*)</b>", page)[1] == "1"
    assert 'id="run-test-count"' not in client.get("/runs/figures/?tests=with").text


def test_the_chip_leads_to_the_same_list_with_tests(client, ann):
    make_run(ann, status="failed", title="Real one")
    make_run(ann, status="failed", title="Test one", is_test=True)
    page = client.get("/runs/?status=failed").text

    chips = page.split('id="run-chips"')[1]
    chip = html.unescape(re.search(r'href="([^"]*)"\s*title="Test runs', chips)[1])

    assert chip == "?status=failed&tests=with"
    assert titles(client, chip) == ["Real one", "Test one"]
    assert "Include test runs" not in client.get(f"/runs/{chip}").text


def test_an_empty_list_says_that_only_test_runs_match(client, ann):
    for _ in range(2):
        make_run(ann, title="Test one", is_test=True)

    page = join_lines(client.get("/runs/").text)

    assert "2 test runs and runs of experiments are not shown." in page
    assert "No runs yet" not in page
    assert "No matching runs" in client.get("/runs/?status=failed").text


def test_a_saved_filter_of_before_is_still_the_selected_tab(client, ann):
    saved = SavedFilter.objects.create(
        owner=ann, name="Failed today", query="status=failed&tests=without"
    )

    page = client.get(f"/runs/?{saved.query}").text

    assert re.search(r'aria-current="\w+"[^>]*>\s*Failed today', page)
    assert "Delete filter" in page


def test_the_api_lists_test_runs_unless_it_is_told_otherwise():
    ann = make_user()
    real, test = make_run(ann), make_run(ann, is_test=True)
    api = Api(ann)

    def ids(query: str = "") -> list[int]:
        return [run["id"] for run in api.get(f"runs?{query}").json()["data"]]

    assert ids() == ids("tests=") == [test.pk, real.pk]
    assert ids("tests=without") == [real.pk]
    assert ids("tests=only") == [test.pk]


def test_links_of_home_lead_to_the_runs_that_it_counts(client, ann):
    User.objects.filter(pk=ann.pk).update(is_superuser=True)
    agent = make_agent(ann, name="Planner")
    for owner in (ann, make_user("bo")):
        end_runs(owner, 11, agent=agent, title="Real run")
        end_runs(owner, 7, agent=agent, title="Test run", is_test=True)
        end_runs(owner, 2, agent=agent, title="Real failure", status="failed")
    step = make_step(Run.objects.filter(owner=ann).first(), tool="call")
    end_runs(ann, 1, agent=agent, title="Real child", parent_step=step)

    for query, count in (
        ("", 26),
        ("?mine=1", 13),
        ("?tests=1", 40),
        ("?mine=1&tests=1", 20),
    ):
        home = client.get(f"/{query}").text
        tile = re.search(r'href="/runs/([^"]*)">\s*<span class="tl">Runs<', home)
        every = re.search(r'href="/runs/([^"]*)">All runs<', home)
        assert len(titles(client, html.unescape(every[1]))) == count, query
        ranked = home.split('id="home-agents"')[1]
        agent_row = re.search(r'href="/runs/(\?[^"]*agent=[^"]*)">(\d+)<', ranked)
        assert len(titles(client, html.unescape(tile[1]))) == count, query
        of_agent = titles(client, html.unescape(agent_row[1]))
        assert len(of_agent) == int(agent_row[2]) == count + 1  # its sub-agent run
