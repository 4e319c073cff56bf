"""The columns of the list of runs."""

import re

import pytest

from runs.services.search.index_runs import index_runs
from tests.make import make_run

pytestmark = pytest.mark.django_db
USUAL = ["answer", "agent", "rating", "created", "seconds", "cost"]


def heads(client, query=""):
    page = client.get(f"/runs/{query}").content.decode()
    return re.findall(r'<th class="c-(\w+)"', page.split("c-q")[1])


def test_shows_the_usual_columns_and_the_one_it_is_sorted_by(client, ann):
    make_run(ann, status="succeeded")
    index_runs()

    assert heads(client) == USUAL
    assert heads(client, "?sort=tokens") == [*USUAL[:5], "tokens", "cost"]


def test_keeps_the_columns_of_a_person(client, ann):
    make_run(ann)
    body = {"column": ["cost", "number", "nonsense"], "here": "/runs/?mine=1"}

    answer = client.post("/runs/columns/", body)

    assert answer.headers["Location"] == "/runs/?mine=1"
    assert heads(client) == ["number", "cost"]


def test_the_usual_columns_return(client, ann):
    make_run(ann)
    client.post("/runs/columns/", {"column": ["cost"]})

    client.post("/runs/columns/", {})

    assert heads(client) == USUAL


@pytest.mark.parametrize(
    ("rating", "shown"),
    [
        pytest.param(1, "Good answer", id="good"),
        pytest.param(-1, "Bad answer", id="bad"),
        pytest.param(None, "", id="not-rated"),
    ],
)
def test_shows_what_people_think_of_the_answer(client, ann, rating, shown):
    make_run(ann, rating=rating)

    page = client.get("/runs/").content.decode()

    cell = re.search(r'<td class="c-rating">(.*?)</td>', page, re.DOTALL)
    assert re.findall(r'title="(.*?)"', cell[1]) == [shown] * bool(shown)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("?rating=good", {1}, id="good"),
        pytest.param("?rating=bad", {-1}, id="bad"),
        pytest.param("?rating=any", {1, -1}, id="any"),
        pytest.param("?rating=none", {None}, id="none"),
        pytest.param("?rating=nonsense", {1, -1, None}, id="unknown"),
    ],
)
def test_is_filtered_by_the_rating(client, ann, query, found):
    ratings = {make_run(ann, rating=rating).pk: rating for rating in (1, -1, None)}

    page = client.get(f"/runs/{query}").content.decode()

    shown = re.findall(r'id="run-row-(\d+)"', page)
    assert {ratings[int(pk)] for pk in shown} == found
