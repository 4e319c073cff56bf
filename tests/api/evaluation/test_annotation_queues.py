"""Annotation queues through the API: settings, runs, and scores of several people."""

import pytest
from django.contrib.auth.models import Group

from runs.models import AnnotationQueue, Example, QueuedRun
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_dataset, make_run, make_user
from tests.makers.annotation import make_ended_run, make_queue, score_next

pytestmark = pytest.mark.django_db

ALL = ["read", "run", "build"]


def test_a_queue_is_created_changed_and_archived(ann, api):
    ann.groups.add(Group.objects.create(name="crew"))
    made = api.post("queues", {"name": "Refunds"})
    assert made.status_code == 201
    queue = made.json()
    assert (len(queue["scale"]), queue["passing_mark"]) == (5, 4)
    path = f"queues/{queue['id']}"
    body = {
        "scale": ["bad", "good"],
        "passing_mark": 2,
        "labels": [],
        "visibility": "groups",
        "groups": ["crew"],
        "dataset": make_dataset(ann, name="Corrections").slug,
    }

    changed = api.patch(path, body, If_Match=made.headers["ETag"])

    assert changed.json()["scale"] == ["bad", "good"]
    assert changed.json()["groups"] == ["crew"]
    assert changed.json()["question"] == queue["question"]
    assert changed.json()["dataset"] == "corrections"
    stale = api.patch(path, {"labels": ["Tone"]}, If_Match=made.headers["ETag"])
    assert stale.status_code == 412
    assert api.post(f"{path}/archive").json()["archived_at"]
    assert api.get("queues").json()["data"] == []
    assert api.post(f"{path}/next", {}).status_code == 409


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scale": ["one"]}, "scale"),
        ({"scale": ["one\ntwo", "three"]}, "scale"),
        ({"scale": ["x" * 31, "y"]}, "scale"),
        ({"labels": list("abcdefghi")}, "labels"),
        ({"labels": [" "]}, "labels"),
        ({"passing_mark": 6}, "passing_mark"),
        ({"people_per_run": 0}, "people_per_run"),
        ({"people_per_run": 10**30}, "people_per_run"),
        ({"question": ""}, "question"),
        ({"dataset": "missing"}, "dataset"),
        ({"visibility": "groups"}, "groups"),
        ({"visibility": "groups", "groups": ["theirs"]}, "groups"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_wrong_settings_are_named(api, change, field):
    answer = api.post("queues", {"name": "New", **change})

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert not AnnotationQueue.objects.exists()


def test_runs_are_added_read_and_removed(ann, api):
    queue, agent = make_queue(ann), make_agent(ann)
    ended, running = make_ended_run(agent), make_run(agent=agent, status="running")
    other = make_ended_run(make_agent(make_user("ben")))
    path = f"queues/{queue.pk}/runs"

    added = api.post(path, {"runs": [ended.pk, running.pk]})
    again = api.post(path, {"runs": [ended.pk]})
    hidden = api.post(path, {"runs": [other.pk]})

    assert added.json() == {"added": 1, "known": 0, "unfinished": 1}
    assert again.json() == {"added": 0, "known": 1, "unfinished": 0}
    assert (hidden.status_code, fields_of(hidden)) == (422, ["runs"])
    [row] = api.get(path).json()["data"]
    assert (row["run"], row["answer"]) == (ended.pk, ended.answer)
    assert api.delete(f"{path}/{other.pk}").status_code == 404
    assert api.delete(f"{path}/{ended.pk}").status_code == 204
    assert not QueuedRun.objects.exists()


def test_two_people_score_without_meeting(ann, api):
    queue = make_queue(ann, runs=2)
    queue.dataset = make_dataset(ann)
    queue.save()
    eve = Api(make_user("eve"), scopes=ALL)
    path = f"queues/{queue.pk}"

    mine = api.post(f"{path}/next", {}).json()["run"]["run"]
    theirs = eve.post(f"{path}/next", {}).json()["run"]["run"]
    assert mine != theirs
    taken = eve.put(f"{path}/runs/{mine}/annotation", {"mark": 2})
    assert (taken.status_code, fields_of(taken)) == (409, ["run"])
    said = {
        "mark": 4,
        "labels": queue.labels[:1] * 2,
        "comment": "Nearly.",
        "correction": "Better.",
        "add": True,
    }
    scored = api.put(f"{path}/runs/{mine}/annotation", said).json()

    [annotation] = scored["annotations"]
    assert scored["scores"] == 1
    assert (annotation["by"], annotation["mark"]) == ("ann", 4)
    assert annotation["correction"] == "Better."
    assert annotation["labels"] == queue.labels[:1]
    assert Example.objects.get().expected_answer == "Better."
    assert eve.post(f"{path}/runs/{theirs}/skip").status_code == 200
    assert eve.post(f"{path}/next", {}).json()["run"] is None
    held = eve.post(f"{path}/next", {"with_skipped": True}).json()["run"]
    assert held["run"] == theirs
    progress = api.get(path).json()["progress"]
    assert (progress["mine"], progress["others"], progress["total"]) == (1, 0, 2)


def test_scores_of_others_are_hidden_until_yours_is_given(ann, api):
    queue = make_queue(ann, runs=1, people_per_run=2)
    eve = make_user("eve")
    score_next(queue, eve, mark=5)
    [row] = api.get(f"queues/{queue.pk}/runs").json()["data"]
    assert (row["scores"], row["annotations"]) == (1, [])

    answer = api.put(f"queues/{queue.pk}/runs/{row['run']}/annotation", {"mark": 2})

    assert {one["by"] for one in answer.json()["annotations"]} == {"ann", "eve"}
    [agreement] = api.get(f"queues/{queue.pk}").json()["agreement"]
    assert sorted(agreement["people"]) == ["ann", "eve"]
    assert (agreement["runs"], agreement["same"]) == (1, 0)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"mark": 0}, "mark"),
        ({"mark": 6}, "mark"),
        ({"mark": 3, "labels": ["Unknown"]}, "labels"),
        ({"mark": 3, "comment": "x" * 4_001}, "comment"),
        ({"mark": 3, "add": True}, "add"),
        ({}, "mark"),
    ],
)
def test_a_wrong_score_is_named_and_not_stored(ann, api, body, field):
    queue = make_queue(ann, runs=1)
    run = QueuedRun.objects.get().run_id

    answer = api.put(f"queues/{queue.pk}/runs/{run}/annotation", body)

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert QueuedRun.objects.get().done_count == 0


def test_others_see_a_queue_only_if_it_is_shared(ann):
    queue = make_queue(ann, runs=1, visibility="private")
    eve = Api(make_user("eve"), scopes=ALL)

    assert eve.get(f"queues/{queue.pk}").status_code == 404
    assert eve.get(f"queues/{queue.pk}/runs").status_code == 404
    queue.visibility = "everyone"
    queue.save()
    assert eve.get(f"queues/{queue.pk}").status_code == 200
    assert eve.patch(f"queues/{queue.pk}", {"labels": []}).status_code == 403
    run = QueuedRun.objects.get().run_id
    assert eve.delete(f"queues/{queue.pk}/runs/{run}").status_code == 403


def test_a_run_of_a_conversation_has_its_earlier_messages(ann, api):
    queue = make_queue(ann)
    run = make_ended_run(make_agent(ann), "yes", given_turns=[["Delete?", "Sure?"]])
    path = f"queues/{queue.pk}"
    api.post(f"{path}/runs", {"runs": [run.pk]})

    shown = api.post(f"{path}/next", {}).json()["run"]

    assert shown["earlier_messages"] == [
        {"role": "user", "text": "Delete?"},
        {"role": "assistant", "text": "Sure?"},
    ]
    listed = api.get(f"{path}/runs").json()["data"]
    assert listed[0]["earlier_messages"] == shown["earlier_messages"]
