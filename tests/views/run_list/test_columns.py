"""The columns of the list of runs."""

import re

import pytest

from runs.services.search.index_runs import index_runs
from tests.make import make_run

pytestmark = pytest.mark.django_db
USUAL = ["answer", "agent", "created", "seconds", "cost"]


def heads(client, query=""):
    page = client.get(f"/runs/{query}").content.decode()
    return re.findall(r'<th class="c-(\w+)"', page.split("c-q")[1])


def test_shows_the_usual_columns_and_the_one_it_is_sorted_by(client, ann):
    make_run(ann, status="succeeded")
    index_runs()

    assert heads(client) == USUAL
    assert heads(client, "?sort=tokens") == [*USUAL[:4], "tokens", "cost"]


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
