"""The search over pages, actions, agents, tools and runs."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from runs.ui.context_processors import NAV_PAGES, reverse_or_empty
from runs.views.search.pages import list_actions, list_lower_pages, list_main_pages
from runs.views.search.places import MAX_RESULTS
from tests.make import make_agent, make_run, make_tool, make_user

pytestmark = pytest.mark.django_db


def found(client, text):
    """Return the texts of the results by kind."""
    page = client.get("/search/", {"q": text}, headers={"HX-Request": "true"}).text
    groups = page.split("<section")[1:]
    return {
        group.split('id="search-')[1].split('"')[0]: re.findall(
            r'<span class="clip">([^<]*)</span>', group
        )
        for group in groups
    }


def test_finds_pages_and_actions_by_words(client, ann):
    assert found(client, "schedule")["pages"] == ["Schedules"]
    assert found(client, "new sched")["actions"] == ["New schedule"]


def test_without_a_text_it_offers_all_pages_and_the_newest_runs(client, ann):
    make_run(ann, title="Plan a trip")

    groups = found(client, "")

    assert {"Home", "Runs", "API tokens"} <= set(groups["pages"])
    assert groups["runs"] == ["Plan a trip"]
    assert "agents" not in groups


def test_finds_agents_tools_and_runs_that_the_user_may_see(client, ann):
    for owner, word in ((ann, "own"), (make_user(), "hidden")):
        agent = make_agent(owner, name=f"{word} weather planner")
        make_tool(owner, name=f"{word}_weather")
        make_tool(owner, name=f"{word}_old_weather", archived_at=timezone.now())
        make_run(owner, agent=agent, title=f"{word} weather question")

    groups = found(client, "weather")

    assert groups["agents"] == ["own weather planner"]
    assert groups["tools"] == ["own_weather"]
    assert groups["runs"] == ["own weather question"]


def test_what_begins_with_the_text_comes_first(client, ann):
    for name in ("a weather agent", "weather agent"):
        make_agent(ann, name=name)

    assert found(client, "weather")["agents"] == ["weather agent", "a weather agent"]


def test_finds_a_run_by_its_number_if_it_is_visible(client, ann):
    run = make_run(ann, title="Mine")
    other = make_run(make_user(), title="Not mine")

    assert found(client, str(run.pk))["runs"] == ["Mine"]
    assert found(client, f"#{run.pk}")["runs"] == ["Mine"]
    assert "runs" not in found(client, str(other.pk))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *(("run {}", "en"), ("Run {}", "en"), ("run #{}", "en"), ("run {}", "zh-hans")),
        *(("运行 {}", "zh-hans"), ("运行{}", "zh-hans")),
    ],
)
def test_finds_a_run_by_the_title_of_its_page(client, ann, text, language):
    run = make_run(ann, title="Mine")
    client.cookies["django_language"] = language

    assert found(client, text.format(run.pk))["runs"] == ["Mine"]


def test_a_run_of_that_number_comes_before_names_with_the_number(client, ann):
    run = make_run(ann, title="Plan a trip")
    make_agent(ann, name=f"Agent {run.pk}0")
    make_run(ann, title=f"Trip {run.pk}0")

    assert list(found(client, str(run.pk)))[0] == "runs"
    assert found(client, str(run.pk))["runs"][0] == "Plan a trip"
    assert list(found(client, f"{run.pk}0"))[0] != "runs"


def test_another_word_before_a_number_finds_no_run(client, ann):
    run = make_run(ann, title="Mine")

    assert "runs" not in found(client, f"tool {run.pk}")


def test_pages_of_administrators_are_for_them_only(client, ann):
    assert "pages" not in found(client, "retention")

    client.force_login(make_user(is_superuser=True, is_staff=True))

    assert found(client, "retention")["pages"] == ["Retention"]


def list_urls(user):
    places = [*list_main_pages(user), *list_lower_pages(user), *list_actions(user)]
    return [place.url for place in places]


@pytest.mark.parametrize("name", [one for *_, names in NAV_PAGES for one in names])
def test_all_pages_of_the_navigation_can_be_found(name):
    url = reverse_or_empty(name)

    assert url in list_urls(make_user(is_superuser=True, is_staff=True))


@pytest.mark.parametrize(
    ("text", "pages", "actions"),
    [
        ("experiment", ["Experiments"], ["New experiment"]),
        ("dataset", ["Datasets"], ["New dataset"]),
        ("evaluator", ["Evaluators"], ["New evaluator"]),
        ("queue", ["Annotation queues"], ["New queue"]),
        ("rule", ["Scoring rules"], ["New rule"]),
        ("API", ["API tokens", "API reference"], ["Import tools from OpenAPI"]),
        ("MCP", ["MCP servers"], ["Add MCP server"]),
        ("credential", ["Credentials"], ["New credential"]),
        ("new tool http", [], ["New tool: HTTP request"]),
        ("curl", [], ["New tool from cURL or a URL"]),
        ("openapi", [], ["Import tools from OpenAPI"]),
    ],
)
def test_finds_pages_below_the_navigation(client, text, pages, actions):
    client.force_login(make_user(is_superuser=True, is_staff=True))

    groups = found(client, text)

    assert groups.get("pages", []) == pages
    assert groups.get("actions", []) == actions


@pytest.mark.parametrize(
    ("is_staff", "permissions"),
    [
        (False, []),
        (True, []),
        (True, ["view_mcpserver", "change_credential"]),
        (True, ["add_tool", "view_tool"]),
    ],
)
def test_offers_only_what_the_user_may_open(client, is_staff, permissions):
    user = make_user(is_staff=is_staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    urls = list_urls(user)

    assert ("/admin/tools/mcpserver/" in urls) == ("view_mcpserver" in permissions)
    assert ("/tools/new/http/" in urls) == ("add_tool" in permissions)
    answers = {url: client.get(url).status_code for url in urls}
    assert {url: code for url, code in answers.items() if code >= 400} == {}


def test_shows_a_few_of_each_kind_and_leads_to_all_runs(client, ann):
    for n in range(MAX_RESULTS + 3):
        make_run(ann, title=f"Trip & {n}")

    page = client.get("/search/", {"q": "trip & "}).text

    assert page.count('id="search-runs-') == MAX_RESULTS
    assert 'href="/runs/?q=trip%20%26&amp;tests=with"' in page


def test_says_how_many_results_there_are(client, ann):
    make_agent(ann, name="zebra")

    part = client.get("/search/", {"q": "zebra"}, headers={"HX-Request": "true"}).text

    assert 'data-count="1"' in part
    assert part.strip().startswith('<div id="search-results"')


def test_a_search_costs_a_few_queries_however_many_rows_there_are(
    client, ann, django_assert_max_num_queries
):
    for n in range(20):
        make_run(ann, agent=make_agent(ann, name=f"weather {n}"), title="weather")
        make_tool(ann, name=f"weather_{n}")

    with django_assert_max_num_queries(8):
        client.get("/search/", {"q": "weather"}, headers={"HX-Request": "true"})
