"""The list of runs."""

import html
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.db import OperationalError
from django.utils import timezone

from runs.models import ProviderOutage, Run, RunTag
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from runs.ui.list_state import REFRESH_SECONDS
from runs.views.run_list import pagination
from runs.views.run_list.pagination import PAGE_SIZE
from tests.make import (
    fit,
    make_agent,
    make_provider,
    make_run,
    make_step,
    make_user,
    make_version,
    make_worker,
)
from tests.support.html import join_lines, strip_tags

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def text(client, query="", **headers):
    page = client.get(f"/runs/{query}", headers=headers).content.decode()
    return join_lines(page)


def listed(client, query="", **headers):
    """Return the rows of the list and what stands around them."""
    return text(client, query, **headers).split('id="run-list"')[1]


def test_shows_the_page(client, ann):
    make_run(ann, title="Is it raining?")

    page = text(client)

    assert "<html" in page
    assert "Is it raining?" in page


def test_shows_the_part_to_htmx(client, ann):
    make_run(ann, title="Is it raining?")

    answer = client.get("/runs/?status=succeeded&status=queued&q=", headers=HTMX)

    page = answer.content.decode()
    assert page.strip().startswith("<hx-partial")
    assert "<html" not in page
    assert "Is it raining?" in page.split('<div id="run-list"')[1]
    assert "HX-Request" in answer.headers["Vary"]
    assert answer.headers["HX-Push-Url"] == "/runs/?status=queued,succeeded"


def test_a_stored_answer_to_a_poll_is_not_shown_as_the_page(client, ann):
    make_run(ann, status="succeeded")

    answer = client.get("/runs/", headers=HTMX | {"X-List-State": "old"})
    state = re.search('"X-List-State": "([^"]+)"', answer.content.decode())
    assert state
    unchanged = client.get("/runs/", headers=HTMX | {"X-List-State": state[1]})

    for one in (answer, unchanged, client.get("/runs/")):
        assert "HX-Request" in one.headers["Vary"]
    assert unchanged.status_code == 204


def test_hides_what_is_someone_elses(client, ann):
    make_run(make_user(), title="Secret question")

    assert "Secret question" not in text(client)
    assert "No runs yet" in text(client)


def test_a_superuser_sees_all_or_the_own(client):
    boss = make_user("boss", is_superuser=True)
    client.force_login(boss)
    make_run(make_user(), title="Somebody's")
    make_run(boss, title="My own")

    assert "Somebody&#x27;s" in text(client)
    assert "Somebody&#x27;s" not in text(client, "?mine=1")
    assert "My own" in text(client, "?mine=1")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("?status=failed", ["Broken"], id="status"),
        pytest.param("?status=unfinished", ["Stalled"], id="unfinished"),
        pytest.param("?q=roke", ["Broken"], id="words"),
        pytest.param("?q=brok&status=unfinished", [], id="both"),
        pytest.param("?status=nonsense", ["Broken", "Stalled"], id="unknown-status"),
        pytest.param("?agent=x&before=y", ["Broken", "Stalled"], id="no-numbers"),
        pytest.param("?q=%00", ["Broken", "Stalled"], id="nul"),
    ],
)
def test_filters(client, ann, query, found):
    make_run(ann, title="Broken", status="failed")
    make_run(ann, title="Stalled")

    page = listed(client, query)

    assert [word for word in ("Broken", "Stalled") if f">{word}<" in page] == found


def test_finds_a_run_by_its_number(client, ann):
    run = make_run(ann, title="This one")
    make_run(ann, title="Another")

    page = listed(client, f"?q={run.pk}")

    assert "This one" in page
    assert "Another" not in page


def test_filters_by_agent(client, ann):
    agent = make_agent(ann, name="planner")
    make_run(ann, agent=agent, title="Planned")
    make_run(ann, title="Not planned")

    page = text(client, f"?agent={agent.pk}")

    assert "Planned" in page
    assert "Not planned" not in page


def test_says_so_where_no_run_fits(client, ann):
    make_run(ann)

    assert "No matching runs" in text(client, "?q=zebra")
    page = client.get("/runs/?q=zebra&status=failed").content.decode()
    assert 'href="?status=failed">Remove the search text' in page
    page = client.get("/runs/?status=failed").content.decode()
    assert "Remove the search text" not in page


def test_an_empty_list_says_that_its_sort_leaves_unfinished_runs_out(client, ann):
    make_run(ann, status="running")
    make_run(ann, status="running", is_test=True)

    page = client.get("/runs/?sort=cost&status=running").text

    assert "sorted by a column that only ended runs have" in page
    assert "Runs without the sort: 1." in page
    assert 'href="?status=running">Remove the sort' in page
    assert "Remove a filter" not in page
    assert "Runs without the sort: 1." in client.get("/runs/?sort=cost").text


def test_an_empty_sorted_list_names_other_causes(client, ann):
    make_run(ann, status="running", title="Test one", is_test=True)

    tests = client.get("/runs/?sort=cost").text
    page = client.get("/runs/?sort=cost&status=failed").text

    assert "Only test runs match" in tests
    assert "No matching runs" in page
    assert "Remove the sort" not in tests + page
    assert "cannot be filtered" not in page


def test_a_sorted_list_says_so_in_a_sentence(client, ann):
    make_run(ann, status="succeeded")
    index_runs()

    page = join_lines(strip_tags(client.get("/runs/?sort=cost").text))

    assert "1 run on this page. Sorted by column Cost, ended runs only." in page


def test_says_how_many_runs_there_are_without_the_search_text(client, ann):
    for status in ("failed", "failed", "succeeded"):
        make_run(ann, status=status)

    assert "Runs without the search text: 2." in text(client, "?q=zebra&status=failed")
    assert "Remove a filter" in text(client, "?q=zebra&status=canceled")


def test_a_choice_of_one_agent_brings_its_versions(client, ann):
    run = make_run(ann)
    make_version(run.agent, number=7)

    def choose(query):
        return join_lines(client.get(f"/runs/{query}", headers=HTMX).content.decode())

    part = choose(f"?agent={run.agent_id}&version=7")
    assert '<option value="7" selected>v7</option>' in part
    assert 'id="run-version-filter" hidden' in choose("")


def test_pages_by_id_in_both_directions(client, ann):
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, title=f"Q{n:03}") for n in range(PAGE_SIZE + 5)]

    first = text(client)
    second = text(client, f"?before={runs[5].pk}")
    back = text(client, f"?after={runs[4].pk}")

    assert [title for title in ("Q054", "Q005", "Q004") if title in first] == [
        "Q054",
        "Q005",
    ]
    assert [title for title in ("Q054", "Q005", "Q004") if title in second] == ["Q004"]
    assert [title for title in ("Q054", "Q005", "Q004") if title in back] == [
        "Q054",
        "Q005",
    ]


def idle_state(page):
    return re.search(r'"X-List-State": "([^"]+)"', page)[1]


def test_an_idle_list_is_sent_again_only_with_a_new_run(client, ann):
    make_run(ann, status="succeeded")
    page = text(client)
    known = HTMX | {"X-List-State": idle_state(page)}
    assert 'hx-trigger="every 3s"' in page
    assert client.get("/runs/", headers=known).status_code == 204

    make_worker()
    make_run(ann, status="running", title="Is it raining?")
    fresh = client.get("/runs/", headers=known)

    assert "Is it raining?" in fresh.content.decode()
    assert '"X-List-State": ""' in fresh.content.decode()


def test_an_idle_filtered_list_notices_that_a_run_has_ended(client, ann):
    run = make_run(ann, status="running", title="Is it raining?")
    state = idle_state(text(client, "?status=succeeded"))
    Run.objects.filter(pk=run.pk).update(
        status="succeeded", lease_until=None, ended_at=timezone.now()
    )
    known = HTMX | {"X-List-State": state}

    fresh = client.get("/runs/?status=succeeded", headers=known)
    assert "Is it raining?" in fresh.content.decode()


@pytest.mark.parametrize("was", ["queued", "running", "awaiting_approval"])
@pytest.mark.parametrize("now", ["queued", "running", "awaiting_approval"])
def test_an_idle_filtered_list_notices_each_change_of_status(client, ann, was, now):
    run = make_run(ann, status=was, title="Is it raining?")
    state = idle_state(text(client, "?status=succeeded"))
    known = HTMX | {"X-List-State": state}

    changed = {"lease_until": None} | fit(now, timezone.now())
    Run.objects.filter(pk=run.pk).update(status=now, **changed)

    answer = client.get("/runs/?status=succeeded", headers=known)
    assert answer.status_code == (204 if was == now else 200)


def test_an_idle_search_notices_that_an_ended_run_can_be_found(client, ann):
    make_run(ann, status="succeeded", output="It is raining.")
    known = HTMX | {"X-List-State": idle_state(text(client, "?seconds=0"))}
    assert client.get("/runs/?seconds=0", headers=known).status_code == 204

    index_runs()

    assert "/runs/" in client.get("/runs/?seconds=0", headers=known).content.decode()


def test_an_idle_list_is_sent_again_after_a_minute(client, ann, monkeypatch):
    run = make_run(ann, status="succeeded", title="Is it raining?")
    now = time.time()
    monkeypatch.setattr("runs.ui.list_state.time.time", lambda: now)
    known = HTMX | {"X-List-State": idle_state(text(client))}
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now(), rating=1)
    assert client.get("/runs/", headers=known).status_code == 204

    now += REFRESH_SECONDS

    assert client.get("/runs/", headers=known).status_code == 200


def test_a_scrolled_list_counts_new_runs_and_stays_where_it_is(client, ann):
    old = make_run(ann, title="Old", status="succeeded")
    for _ in range(2):
        make_run(ann, title="New")
    make_run(make_user(), title="New")
    poll = HTMX | {"X-List-State": "", "X-List-Top": str(old.pk)}

    page = listed(client, **poll)

    assert "2 new runs" in page
    assert ">Old<" in page
    assert ">New<" not in page
    known = {**poll, "X-List-State": idle_state(page)}
    assert client.get("/runs/", headers=known).status_code == 204
    at_top = HTMX | {"X-List-State": idle_state(page)}
    assert ">New<" in listed(client, **at_top)


def test_a_sorted_list_stays_as_it_is(client, ann):
    make_run(ann, status="succeeded")
    index_runs()

    assert (
        'hx-trigger="every 3s"' not in text(client, "?sort=cost").split("run-list")[1]
    )


def test_the_address_of_a_search_has_no_empty_parameters(client, ann):
    answer = client.get("/runs/?q=rain&agent=&since=&tool=&tests=")

    assert answer.headers["Location"] == "/runs/?q=rain"


@pytest.mark.parametrize("status", ["succeeded", "awaiting_approval"])
def test_a_search_finds_the_tools_that_a_run_called(client, ann, status):
    run = make_run(ann, status=status, title="Is it raining?")
    make_step(run, tool="refund_payment")
    make_run(ann, status=status, title="Something else")
    index_runs()
    page = text(client, "?q=refund_pay")

    assert "Is it raining?" in page
    assert "Something else" not in page


def test_a_search_finds_the_errors_of_steps(client, ann):
    run = make_run(ann, status="succeeded", title="Is it raining?")
    make_step(run, status="failed", observation="Connection refused at 10.0.0.1")
    index_runs()

    assert "Is it raining?" in text(client, "?q=connection+refused")


@pytest.mark.parametrize("status", ["succeeded", "awaiting_approval"])
@pytest.mark.parametrize(
    "words", ["refund order", "北京", 'said "no"', "line\\two", "50%"]
)
def test_a_search_finds_the_inputs_before_and_after_a_run_has_ended(
    client, ann, status, words
):
    inputs = {"task": f"Please REFUND ORDER 7 {words} now\nthanks", "count": 3}
    make_run(ann, status=status, title="Is it raining?", inputs=inputs)
    make_run(ann, status=status, title="Other", inputs={"task": "5 of 10"})
    index_runs()
    page = text(client, f"?{urlencode({'q': words})}")

    assert "Is it raining?" in page
    assert ">Other<" not in page


@pytest.mark.parametrize("status", ["succeeded", "awaiting_approval"])
def test_a_search_ignores_the_names_of_the_inputs(client, ann, status):
    make_run(ann, status=status, title="Is it raining?", inputs={"postcode": "N1"})
    index_runs()

    assert "Is it raining?" not in text(client, "?q=postcode")


def test_a_search_finds_the_code_of_an_error(client, ann):
    make_run(ann, status="failed", title="Is it raining?", error_code="provider_gone")
    index_runs()

    assert "Is it raining?" in text(client, "?q=provider_gone")


def test_takes_the_same_few_queries_however_many_runs(
    client, ann, django_assert_max_num_queries
):
    for _ in range(10):
        make_run(ann, status="running")

    with django_assert_max_num_queries(21):
        text(client)


def test_escapes_what_people_write(client, ann):
    make_run(ann, title="<script>alert(1)</script>")

    assert "<script>alert" not in text(client)


def family(ann):
    parent = make_run(ann, title="Plan a trip", status="waiting")
    step = make_step(parent, status="started", tool="scout", attempts=1)
    child = make_run(ann, title="Oslo?", parent_step=step, source="parent")
    return parent, child


def test_runs_of_called_agents_are_shown_when_asked_for(client, ann):
    _, child = family(ann)

    assert "Oslo?" not in text(client)
    assert "Waiting for scout" in text(client)
    for query in ("?children=1", f"?agent={child.agent_id}", f"?q={child.pk}"):
        assert "Oslo?" in text(client, query)


def test_a_called_agent_that_needs_a_person_is_shown(client, ann):
    _, child = family(ann)
    Run.objects.filter(pk=child.pk).update(status="awaiting_approval")

    page = text(client, "?status=needs")
    assert "Oslo?" in page
    counts = dict(re.findall(r">([A-Z][a-z ]+?) *<span[^>]*>(\d+)</span>", page))
    assert counts == {"Unfinished": "1", "Needs attention": "1"}


def indexed(ann, title="Filed", **fields):
    """Make a run that is over, with its card."""
    run = ended(ann, title, **fields)
    index_runs()
    return run


def ended(ann, title, **fields):
    """Make a run that is over, whose card `index_runs` will make."""
    fields.setdefault("status", "succeeded")
    begun = timezone.now() - timedelta(seconds=fields.pop("seconds", 1))
    return make_run(ann, title=title, started_at=begun, **fields)


TWO_WORDS = ("Cheap", "Dear")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("?cost=0.1", ["Dear"], id="cost"),
        pytest.param("?seconds=60", ["Dear"], id="seconds"),
        pytest.param("?tool=search", ["Dear"], id="tool"),
        pytest.param("?tag=keep", ["Dear"], id="tag"),
        pytest.param("?tests=only", ["Cheap"], id="tests only"),
        pytest.param("?tests=without", ["Dear"], id="without tests"),
        pytest.param("?tests=with", ["Cheap", "Dear"], id="with tests"),
        pytest.param("", ["Dear"], id="no filter"),
        pytest.param("?model=model-a&tests=with", ["Cheap", "Dear"], id="model"),
        pytest.param("?model=model-x", [], id="another model"),
        pytest.param("?since=1h&tests=with", ["Cheap"], id="since"),
        pytest.param("?begin=2020-01-01&end=2020-12-31", ["Dear"], id="days"),
        pytest.param("?q=outcome+of", ["Dear"], id="output"),
        pytest.param("?q=OUTCOME&cost=0.1", ["Dear"], id="output and cost"),
        pytest.param(
            "?q=100%25&tests=with", ["Cheap"], id="a sign of the search language"
        ),
    ],
)
def test_finds_by_what_a_run_did(client, ann, query, found):
    indexed(ann, "Cheap", cost="0.01", is_test=True, inputs={"input": "Is it 100%?"})
    dear = indexed(ann, "Dear", cost="0.5", seconds=90, output="The outcome of it")
    make_step(dear, tool="search", elapsed=0.1)
    RunTag.objects.create(run=dear, name="keep")
    Run.objects.update(indexed=False)
    Run.objects.filter(pk=dear.pk).update(created_at=datetime(2020, 5, 5, tzinfo=UTC))
    index_runs()

    page = text(client, query)

    assert [word for word in TWO_WORDS if f">{word}<" in page] == found


def test_shows_two_tags_beside_a_title_and_how_many_more_there_are(client, ann):
    run = make_run(ann, status="succeeded")
    for name in ("bad", "good", "new", "old"):
        RunTag.objects.create(run=run, name=name)

    row = text(client).split(f'id="run-row-{run.pk}"')[1].split("</tr>")[0]

    assert ">bad</span>" in row
    assert ">good</span>" in row
    assert ">new</span>" not in row
    assert '<span class="tag" title="new, old">+2' in row


def test_sorts_by_a_column_and_pages_through_all(client, ann, monkeypatch):
    count, agent = PAGE_SIZE + 20, make_agent(ann)
    for n in range(count):
        ended(
            ann,
            f"Q{n:03}",
            agent=agent,
            seconds=n % 7,
            rounds=n * 2 % 7,
            input_tokens=n * 3 % 7,
            cost=n * 4 % 7,
        )
    index_runs()
    columns = {"seconds": 1, "rounds": 2, "tokens": 3, "cost": 4}

    def check(column, factor):
        first = text(client, f"?sort={column}")
        assert f'data-sorted="{column}"' in first
        older = html.unescape(re.search(r'href="(\?[^"]*before=[^"]*)"', first)[1])
        second = text(client, older)
        newer = html.unescape(re.search(r'href="(\?[^"]*after=[^"]*)"', second)[1])
        seen = numbers(first) + numbers(second)

        assert len(seen) == len(set(seen)) == count, column
        values = [n * factor % 7 for n in seen]
        assert values == sorted(values, reverse=True), column
        assert numbers(text(client, newer)) == numbers(first), column

    for column, factor in columns.items():
        check(column, factor)
    # Gather the runs where the index takes too long.
    monkeypatch.setattr(pagination, "limit_query_time", end_query)
    for column, factor in columns.items():
        check(column, factor)


def numbers(page):
    """Return the numbers in the titles of a page's runs."""
    return [int(number) for number in re.findall(r">Q(\d+)<", page)]


@contextmanager
def end_query(_milliseconds: int) -> Iterator[None]:
    """End a query as the database does when its time is over."""
    yield
    raise OperationalError("canceling statement due to statement timeout")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?cost=much", "much is not an amount"),
        ("?seconds=-1", "is not a number"),
        ("?begin=2026-13-45", "is not a date"),
        ("?cost=NaN", "is not an amount"),
    ],
)
def test_a_filter_that_makes_no_sense_is_named(client, ann, query, sentence):
    make_run(ann, title="Still there")

    page = text(client, query)

    assert sentence in page
    assert "Still there" in page


@pytest.mark.parametrize("place", ["x~1", "1~x", "NaN~1", "~", "1~1~1", "9" * 40])
@pytest.mark.parametrize("sort", ["", "cost"])
def test_a_place_that_makes_no_sense_is_the_top(client, ann, place, sort):
    indexed(ann, "Still there")

    sorted_by = f"sort={sort}&" if sort else ""
    assert "Still there" in text(client, f"?{sorted_by}before={place}")


def test_counts_what_is_unfinished_and_what_needs_a_person(client, ann):
    make_run(ann, status="running")
    make_run(ann, status="awaiting_approval")
    make_run(make_user(), status="running")

    page = text(client)

    assert re.search(r'Unfinished <span class="count">2<', page)
    assert re.search(r'Needs attention <span class="count">1<', page)


def test_finds_a_run_before_and_after_it_is_filed(client, ann):
    make_run(ann, title="Weather in Oslo", inputs={"input": "Weather in Oslo"})
    over = make_run(
        ann, title="More Oslo", inputs={"input": "More Oslo"}, status="succeeded"
    )

    assert re.findall(r">(Weather in|More) Oslo<", text(client, "?q=oslo")) == [
        "More",
        "Weather in",
    ]
    index_runs()
    assert re.findall(r">(Weather in|More) Oslo<", text(client, "?q=oslo")) == [
        "More",
        "Weather in",
    ]
    assert Run.objects.get(pk=over.pk).indexed


def test_the_tabs_keep_their_counts_fresh(client, ann):
    make_run(ann, status="running")

    page = text(client, "?q=oslo")
    part = client.get("/runs/groups/?q=oslo").content.decode()

    assert 'hx-get="/runs/groups/?q=oslo"' in page
    assert part.strip().startswith('<nav class="tabs bare" id="run-groups"')
    assert 'href="/runs/?status=unfinished"' in part
    assert '<span class="count">1</span>' in join_lines(part)


@pytest.mark.parametrize(
    "query",
    [
        "?end=9999-12-31",
        "?begin=0001-01-01",
        "?cost=1e-99999",
        "?cost=99999999.9999999",
        "?cost=Infinity",
        "?sort=cost&before=1e20~1",
        "?sort=cost&before=1e-99999~9999999",
        "?sort=cost&after=NaN~1",
        "?sort=seconds&before=1e400~1",
        "?sort=rounds&before=1e999999999~1",
        "?sort=tokens&after=-1e30~1",
    ],
)
def test_an_amount_or_a_day_that_no_database_takes_is_left_out(client, ann, query):
    make_run(ann, title="Is it raining?", status="succeeded")
    index_runs()

    assert "Is it raining?" in text(client, query)


def test_a_resumed_run_is_not_found_by_what_it_was_before(client, ann):
    run = indexed(
        ann, "Again", cost="0.5", status="limit_reached", stop_reason="iterations"
    )
    assert ">Again<" in text(client, "?cost=0.1")

    resume_run(run, by=ann, limits={"max_iterations": 30})

    assert ">Again<" not in text(client, "?cost=0.1")
    assert ">Again<" in text(client, "?status=unfinished")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("iterations", "Round limit reached"),
        ("time", "Time limit reached"),
        ("loop", "Stopped in a loop without progress"),
        ("expired", "Approval expired"),
    ],
)
def test_a_run_that_reached_a_limit_names_the_limit(client, ann, reason, words):
    make_run(ann, status="limit_reached", stop_reason=reason)

    assert words in text(client)


def test_a_run_that_is_over_cannot_be_chosen_to_stop(client, ann):
    over, live = make_run(ann, status="succeeded"), make_run(ann)

    page = text(client)

    assert f'aria-label="Select run {live.pk}" data-unfinished>' in page
    assert f'aria-label="Select run {over.pk}">' in page


def test_only_failed_runs_and_those_at_a_limit_can_be_selected_to_resume(client, ann):
    failed, limited = (
        make_run(ann, status="failed"),
        make_run(ann, status="limit_reached"),
    )

    page = text(client)

    for run in (failed, limited):
        assert f'aria-label="Select run {run.pk}" data-resumable>' in page
    assert page.count("data-resumable") == 2


def test_a_tab_counts_the_list_it_leads_to(client, ann):
    make_run(ann, title="A zebra")
    make_run(ann, title="A horse")

    assert 'Unfinished <span class="count">2<' in text(client, "?q=zebra")


def test_a_long_query_of_a_form_leads_to_the_short_one(client, ann):
    agents = make_agent(ann), make_agent(ann)
    query = "&".join(f"agent={one.pk}" for one in agents)

    answer = client.get(f"/runs/?status=running&status=failed&{query}&tag=a,b&q=")

    numbers = ",".join(str(one.pk) for one in agents)
    short = f"/runs/?status=running,failed&agent={numbers}&tag=a%2Cb"
    assert answer.headers["Location"] == short.replace("%2C", ",")


def test_all_statuses_of_a_group_are_written_as_the_group(client, ann):
    url = "/runs/?status=awaiting_decision&status=awaiting_approval"

    assert client.get(url).headers["Location"] == "/runs/?status=needs"


def test_several_values_of_a_filter_match_any_of_them(client, ann):
    for title, name in (("One", "red"), ("Two", "blue"), ("Three", "green")):
        run = make_run(ann, title=title, status="succeeded")
        RunTag.objects.create(run=run, name=name)
        make_step(run, tool=name)
    index_runs()

    for name in ("tag", "tool"):
        page = listed(client, f"?{name}=red&{name}=blue")
        assert re.findall(r">(One|Two|Three)<", page) == ["Two", "One"]


def test_finds_the_runs_in_which_a_call_of_a_tool_failed(client, ann):
    for title, statuses in (
        ("Fine", {"look_up": "succeeded", "search": "failed"}),
        ("Late", {"look_up": "failed", "search": "succeeded"}),
        ("Twice", {"look_up": "failed", "search": "failed"}),
    ):
        run = make_run(ann, title=title, status="succeeded")
        for tool, status in statuses.items():
            make_step(run, tool=tool, status=status)
        make_step(run, tool="look_up")
    index_runs()

    for query, found in (
        ("?failed_tool=look_up", ["Twice", "Late"]),
        ("?failed_tool=look_up&tool=search", ["Twice", "Late"]),
        ("?failed_tool=search&failed_tool=look_up", ["Twice", "Late", "Fine"]),
        ("?failed_tool=weather", []),
    ):
        page = listed(client, query)
        assert re.findall(r">(Fine|Late|Twice)<", page) == found, query
    figures = client.get("/runs/figures/").text
    facet = figures.split('id="run-facet-failed_tool"')[1].split("</ul>")[0]
    assert re.findall(r'value="(\w+)".*?class="num">(\d+)<', facet, re.S) == [
        ("look_up", "2"),
        ("search", "2"),
    ]


def test_finds_failed_runs_by_their_error_and_runs_by_their_source(client, ann):
    make_run(ann, title="Limited", status="failed", error_code="rate_limit")
    make_run(ann, title="Late", status="failed", error_code="timeout", source="api")

    assert ">Late<" not in listed(client, "?error=rate_limit")
    assert ">Limited<" in listed(client, "?error=rate_limit")
    assert ">Limited<" not in listed(client, "?source=api")


def test_a_time_of_the_day_bounds_the_list(client, ann):
    for hour in (9, 10, 11):
        run = make_run(ann, title=f"At {hour}")
        at = datetime(2026, 11, 20, hour, tzinfo=UTC)
        Run.objects.filter(pk=run.pk).update(created_at=at)

    page = listed(client, "?begin=2026-11-20T10:00&end=2026-11-20T11:00")

    assert re.findall(r">At (\d+)<", page) == ["10"]


def test_runs_of_long_ago_are_listed_by_number_on_all_pages(client, ann):
    agent = make_agent(ann)
    at = timezone.now() - timedelta(days=9)
    runs = [make_run(ann, agent=agent, title=f"Q{n:02}") for n in range(PAGE_SIZE + 3)]
    Run.objects.update(created_at=at)
    make_run(ann, agent=agent, title="Today")
    day = at.date().isoformat()

    first = listed(client, f"?begin={day}&end={day}")
    second = listed(client, f"?begin={day}&end={day}&before={runs[3].pk}")

    found = re.findall(r">(Q\d+|Today)<", first + second)
    assert found == [f"Q{n:02}" for n in range(PAGE_SIZE + 2, -1, -1)]


def test_shows_the_beginning_of_an_answer_or_why_there_is_none(client, ann):
    output = '**Dry** all day, "mostly".\n\n| Day | Rain |\n|---|---|\n'
    make_run(ann, status="succeeded", output=output + "é\U0001f327" * 300)
    make_run(ann, status="succeeded", output={"rain": False})
    make_run(ann, status="failed", error_message="Disk full", output="half")

    page = html.unescape(listed(client))

    assert 'Dry all day, "mostly". Day Rain é\U0001f327' in page
    assert '{"rain": false}' in page
    assert "Disk full" in page
    assert "half" not in page


def test_a_short_word_is_searched_in_the_latest_runs(client, ann, monkeypatch):
    first = indexed(ann, "北京")
    for _ in range(3):
        indexed(ann, "上海")
    monkeypatch.setattr("runs.views.run_list.filter_queries.MAX_COMPARED_RUNS", 3)

    page = listed(client, "?q=北京")

    assert "look at the latest" in page
    assert f"/runs/{first.pk}/" not in page
    assert f"/runs/{first.pk}/" in listed(client)


def test_a_run_says_for_which_provider_it_waits(client, ann):
    now, provider = timezone.now(), make_provider(ann, name="Local")
    make_run(
        ann,
        status="waiting",
        waiting_provider=provider,
        waiting_since=now,
        available_at=now + timedelta(minutes=30),
    )
    at = now + timedelta(seconds=40)
    ProviderOutage.objects.create(provider=provider, started_at=now, probe_at=at)

    assert "Waiting for provider Local, next attempt in" in text(client)
