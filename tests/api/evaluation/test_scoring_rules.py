"""Scoring rules through the API: settings, pauses, and what they have found."""

import pytest
from django.db.models.functions import Now

from runs.models import ScoringRule
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_dataset, make_user, make_webhook
from tests.makers.annotation import make_queue
from tests.makers.experiments import make_revision
from tests.makers.scoring import end_run, make_rule, make_yes_evaluator, score_all

pytestmark = pytest.mark.django_db

ALL = ["read", "run", "build"]


def test_a_rule_is_created_changed_paused_and_deleted(ann, api):
    agent, evaluator = make_agent(ann), make_yes_evaluator(ann)
    queue, dataset, webhook = make_queue(ann), make_dataset(ann), make_webhook(ann)
    body = {
        "name": "Says yes",
        "agent": agent.slug,
        "evaluators": [evaluator.slug],
        "percent": 12.5,
        "daily_budget": 2.5,
        "queue": queue.slug,
        "dataset": dataset.slug,
        "webhook": webhook.pk,
    }

    made = api.post("rules", body)

    assert made.status_code == 201
    rule = made.json()
    assert {name: rule[name] for name in body} == body
    path = f"rules/{rule['id']}"
    changed = api.patch(
        path, {"queue": None, "daily_runs": 5}, If_Match=made.headers["ETag"]
    ).json()
    assert (changed["queue"], changed["daily_runs"]) == (None, 5)
    assert (changed["percent"], changed["dataset"]) == (12.5, dataset.slug)
    stale = api.patch(path, {"percent": 1}, If_Match=made.headers["ETag"])
    assert stale.status_code == 412
    assert api.post(f"{path}/pause").json()["is_paused"] is True
    assert api.post(f"{path}/resume").json()["is_paused"] is False
    assert [one["id"] for one in api.get("rules").json()["data"]] == [rule["id"]]
    assert api.delete(path).status_code == 204
    assert not ScoringRule.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agent": "missing"}, "agent"),
        ({"evaluators": ["missing"]}, "evaluators"),
        ({"evaluators": []}, "evaluators"),
        ({"evaluators": ["pairwise"]}, "evaluators"),
        ({"percent": 0}, "percent"),
        ({"percent": 101}, "percent"),
        ({"daily_budget": 0}, "daily_budget"),
        ({"daily_runs": 0}, "daily_runs"),
        ({"daily_runs": -1}, "daily_runs"),
        ({"queue": "theirs"}, "queue"),
        ({"dataset": "missing"}, "dataset"),
        ({"webhook": 10**15}, "webhook"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_wrong_settings_are_named(ann, api, change, field):
    config = {"provider": "p", "model": "m", "rubric": "r", "form": "pairwise"}
    make_revision(ann, name="Pairwise", kind="judge", config=config)
    make_queue(make_user("eve"), name="theirs", visibility="private")
    body = {
        "name": "New",
        "agent": make_agent(ann).slug,
        "evaluators": [make_yes_evaluator(ann).slug],
    }

    answer = api.post("rules", {**body, **change})

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert not ScoringRule.objects.exists()


def test_what_a_rule_found_is_read_by_its_owner_only(ann, api):
    agent = make_agent(ann)
    rule = make_rule(agent)
    good, bad = end_run(agent), end_run(agent, output="no")
    assert score_all() == 2
    path = f"rules/{rule.pk}"

    scores = api.get(f"{path}/scores").json()
    runs = api.get(f"{path}/runs").json()["data"]

    totals = scores["totals"]
    assert (totals["runs"], totals["passed"], totals["failed"]) == (2, 1, 1)
    assert len(scores["days"]) == 30
    today = scores["days"][-1]
    assert (today["runs"], today["passed"], today["failed"]) == (2, 1, 1)
    [version] = scores["versions"]
    assert 0 < version["pass_rate_low"] < 0.5 < version["pass_rate_high"] < 1
    assert {one["run"]: one["passed"] for one in runs} == {good.pk: True, bad.pk: False}
    assert all(len(one["scores"]) == 1 for one in runs)
    eve = Api(make_user("eve"), scopes=ALL)
    for one in (path, f"{path}/scores", f"{path}/runs"):
        assert eve.get(one).status_code == 404
    assert eve.delete(path).status_code == 404


def test_what_was_archived_since_can_stay(ann, api):
    queue, dataset = make_queue(ann), make_dataset(ann)
    rule = make_rule(make_agent(ann), queue=queue, dataset=dataset)
    for row in (rule.agent, queue, dataset, *rule.evaluators.all()):
        type(row).objects.filter(pk=row.pk).update(archived_at=Now())

    changed = api.patch(f"rules/{rule.pk}", {"percent": 5})

    assert changed.status_code == 200
    assert (changed.json()["percent"], changed.json()["queue"]) == (5, queue.slug)
    same = {"evaluators": changed.json()["evaluators"]}
    assert api.patch(f"rules/{rule.pk}", same).status_code == 200
    other = make_rule(make_agent(ann))
    refused = api.patch(f"rules/{other.pk}", {"queue": queue.slug})
    assert fields_of(refused) == ["queue"]


def test_a_rule_names_evaluators_that_are_unavailable(ann, api):
    rule = make_rule(make_agent(ann))
    evaluator = rule.evaluators.get()
    path = f"rules/{rule.pk}"
    assert api.get(path).json()["unavailable_evaluators"] == []
    evaluator.archived_at = Now()
    evaluator.save()
    end_run(rule.agent)
    score_all()

    assert api.get(path).json()["unavailable_evaluators"] == [evaluator.slug]
    totals = api.get(f"{path}/scores").json()["totals"]
    assert (totals["skipped"], totals["unscored"]) == (0, 1)
    assert api.get(f"{path}/runs").json()["data"][0]["state"] == "unscored"
