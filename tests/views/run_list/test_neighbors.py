"""From one run of a list to the next."""

import pytest

from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(ann):
    """Four runs; the second failed."""
    statuses = ("succeeded", "failed", "succeeded", "succeeded")
    return [make_run(ann, status=status) for status in statuses]


def step(client, run, direction, listed="status=succeeded"):
    address = f"/runs/{run.pk}/{direction}/in-list/"
    return client.get(address, {"in": listed}).headers["Location"]


def test_steps_through_the_runs_of_the_list_and_keeps_its_filters(client, runs):
    first, _failed, third, fourth = runs

    assert step(client, fourth, "next") == f"/runs/{third.pk}/?in=status%3Dsucceeded"
    assert step(client, third, "next").startswith(f"/runs/{first.pk}/")
    assert step(client, first, "previous").startswith(f"/runs/{third.pk}/")


def test_the_ends_of_the_list_say_so(client, runs):
    assert step(client, runs[0], "next").startswith(f"/runs/{runs[0].pk}/")

    page = client.get(f"/runs/{runs[0].pk}/").content.decode()

    assert "This is the last run of the list." in page


def test_runs_of_others_are_no_neighbors(client, ann, runs):
    make_run(make_user("bob"), status="succeeded")
    mine = make_run(ann, status="succeeded")

    assert step(client, mine, "next").startswith(f"/runs/{runs[3].pk}/")


def test_the_list_and_the_steps_keep_the_list(client, runs):
    rows = client.get("/runs/", {"status": "failed"}).content.decode()
    assert f'href="/runs/{runs[1].pk}/?in=status%3Dfailed"' in rows

    page = client.get(f"/runs/{runs[1].pk}/?in=status%3Dfailed").content.decode()

    assert 'href="/runs/?status=failed"' in page
    assert f"/runs/{runs[1].pk}/next/in-list/?in=status%3Dfailed" in page
    assert 'href="?in=status%3Dfailed&amp;step=0"' in page


def test_a_run_opened_elsewhere_has_no_neighbors(client, runs):
    assert "in-list" not in client.get(f"/runs/{runs[0].pk}/").content.decode()
