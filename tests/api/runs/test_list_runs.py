"""`GET /api/v1/runs`: filters, sorts and pages."""

import pytest

from runs.models import RunTag
from runs.services.search.index_runs import index_runs
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


def list_ids(api: Api, query: str = "") -> list[int]:
    return [run["id"] for run in api.get(f"runs?{query}").json()["data"]]


def test_pages_have_every_run_once_and_the_newest_first():
    ann = make_user()
    agent = make_agent(ann)
    made = [make_run(agent=agent).pk for _ in range(5)]
    make_run()  # of somebody else
    api, found, cursor = Api(ann), [], ""

    while cursor is not None:
        page = api.get(f"runs?limit=2&cursor={cursor}").json()
        found += [run["id"] for run in page["data"]]
        cursor = page["next"]

    assert found == made[::-1]


def test_filters_match_any_of_several_values():
    ann = make_user()
    one, other = make_agent(ann, slug="one"), make_agent(ann, slug="other")
    failed = make_run(agent=one, status="failed", error_code="timeout")
    done = make_run(agent=one, status="succeeded")
    queued = make_run(agent=other)
    RunTag.objects.create(run=done, name="good")
    api = Api(ann)

    assert list_ids(api, "status=failed&status=succeeded") == [done.pk, failed.pk]
    assert list_ids(api, "status=unfinished") == [queued.pk]
    assert list_ids(api, "agent=other") == [queued.pk]
    assert list_ids(api, "agent=nobody") == []
    assert list_ids(api, "tag=good") == [done.pk]
    assert list_ids(api, "error=timeout") == [failed.pk]


def test_sorts_ended_runs_by_their_numbers():
    ann = make_user()
    agent = make_agent(ann)
    cheap, dear = (
        make_run(agent=agent, status="succeeded", cost=cost).pk for cost in (1, 9)
    )
    make_run(agent=agent)
    while index_runs():
        pass
    api = Api(ann)

    first = api.get("runs?sort=cost&limit=1").json()
    second = api.get(f"runs?sort=cost&limit=1&cursor={first['next']}").json()

    assert [page["data"][0]["id"] for page in (first, second)] == [dear, cheap]
    assert second["next"] is None


def test_a_run_in_a_list_says_whose_it_is_and_what_people_think():
    run = make_run(status="succeeded", title="A day in Lima", rating=1)
    RunTag.objects.create(run=run, name="good")

    [found] = Api(run.owner).get("runs").json()["data"]

    assert found["owner"] == run.owner.get_username()
    assert (found["title"], found["rating"]) == ("A day in Lima", 1)
    assert found["tags"] == ["good"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("colour=red", "colour"),
        ("status=done", "status.0.literal['queued','running','awaiting_approval']"),
        ("limit=0", "limit"),
        ("limit=1000", "limit"),
        ("cursor=x", "cursor"),
        ("sort=cost&cursor=7", "cursor"),
        ("begin=yesterday", "begin"),
        ("cost=cheap", "cost"),
        ("since=1y", "since"),
        ("q=a&q=b", "q"),
        ("q=%00", "q"),
        ("user=0x1", "user.0"),
    ],
)
def test_an_invalid_filter_is_named(query, field):
    answer = Api(make_user()).get(f"runs?{query}")

    assert answer.status_code == 422
    assert fields_of(answer)[0].split(".literal")[0] == field.split(".literal")[0]
