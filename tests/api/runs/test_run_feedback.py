"""Rating, tags, comments, links, re-runs and deletion of a run through the API."""

import pytest

from runs.models import Run, RunComment
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


def test_a_rating_is_set_and_removed():
    run = make_run(status="succeeded")
    api = Api(run.owner)

    for rating in (1, 1, None):
        assert api.put(f"runs/{run.pk}/rating", {"rating": rating}).status_code == 200
        run.refresh_from_db()
        assert run.rating == rating


def test_tags_are_replaced():
    run = make_run()
    api = Api(run.owner)
    api.put(f"runs/{run.pk}/tags", {"tags": ["a", "b"]})

    answer = api.put(f"runs/{run.pk}/tags", {"tags": ["b", "c  d"]})

    assert answer.json() == {"tags": ["b", "c d"]}


def test_comments_are_written_listed_and_deleted():
    run = make_run()
    api = Api(run.owner)

    made = api.post(f"runs/{run.pk}/comments", {"text": "Good."})

    assert made.status_code == 201
    assert api.client.get(made.headers["Location"], headers=api.headers).json() == (
        made.json()
    )
    assert api.get(f"runs/{run.pk}/comments").json()["data"] == [made.json()]
    gone = api.delete(f"runs/{run.pk}/comments/{made.json()['id']}")
    assert (gone.status_code, RunComment.objects.count()) == (204, 0)


def test_a_link_is_shown_once_and_revoked():
    run = make_run(status="succeeded")
    api = Api(run.owner)
    made = api.post(f"runs/{run.pk}/shares", {"hours": 2}).json()

    [listed] = api.get(f"runs/{run.pk}/shares").json()["data"]
    api.delete(f"runs/{run.pk}/shares/{made['id']}")

    assert "/shared/" in made["url"]
    assert "url" not in listed
    assert api.get(f"runs/{run.pk}/shares").json()["data"] == []


def test_a_rerun_has_the_same_inputs():
    ann = make_user()
    agent = make_agent(ann)
    api = Api(ann)
    first = api.post("runs", {"agent": agent.slug, "inputs": {"input": "hi"}}).json()

    again = api.post(f"runs/{first['id']}/rerun").json()
    other = api.post(f"runs/{first['id']}/rerun", {"inputs": {"input": "ho"}}).json()

    assert (again["inputs"], other["inputs"]) == ({"input": "hi"}, {"input": "ho"})
    assert Run.objects.count() == 3


def test_only_ended_runs_are_deleted():
    run, queued = make_run(status="succeeded"), make_run()
    child = make_run(agent=run.agent, parent_step=make_step(run), status="succeeded")

    assert fields_of(Api(run.owner).delete(f"runs/{child.pk}")) == ["id"]
    assert Api(run.owner).delete(f"runs/{run.pk}").status_code == 204
    assert fields_of(Api(queued.owner).delete(f"runs/{queued.pk}")) == ["status"]
    assert list(Run.objects.values_list("pk", flat=True)) == [queued.pk]


def test_runs_are_compared():
    one = make_run(status="succeeded", output="a", inputs={"input": "x"})
    other = make_run(
        agent=one.agent, status="succeeded", output="b", inputs={"input": "y"}
    )

    said = Api(one.owner).get(f"runs/{one.pk}/compare?other={other.pk}").json()

    assert said["answers"] == "different"
    assert "Inputs" in [setting["name"] for setting in said["settings"]]
