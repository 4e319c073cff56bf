"""Gates of agents and the search for a failing version, through the API."""

import pytest
from django.utils import timezone

from runs.models import Experiment, Gate, Run
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_call, make_dataset, make_user, make_version
from tests.makers.experiments import (
    end_runs,
    finish_bisection,
    make_examples,
    make_revision,
    turn,
)
from tests.makers.gates import finish_experiment, make_gate
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db

ALL = ["read", "run", "build"]


def test_a_gate_is_set_run_and_met(ann, api):
    agent = make_agent(ann)
    path = f"agents/{agent.pk}/gate"
    dataset, revision = make_examples(ann, 3), make_revision(ann)
    body = {
        "dataset": dataset.slug,
        "evaluators": [revision.evaluator.slug],
        "min_pass_rate": 1,
        "max_p95_seconds": 60,
    }

    assert api.get(path).status_code == 404
    gate = api.put(path, body).json()
    assert (gate["status"], gate["min_pass_rate"]) == ("missing", 1)
    assert (gate["max_p95_seconds"], gate["max_cost_increase"]) == (60, None)
    started = api.post(f"{path}/run", {})
    assert started.status_code == 201
    assert api.get(path).json()["status"] == "running"
    experiment = Experiment.objects.get(pk=started.json()["id"])
    assert started.headers["Location"] == f"/api/v1/experiments/{experiment.pk}"
    turn(experiment)
    for run in Run.objects.all():
        make_call(run, elapsed=1.5)
    finish_experiment(experiment)

    read = api.get(path).json()
    assert (read["status"], read["experiment"]) == ("met", experiment.pk)
    assert {one["kind"] for one in read["results"]} >= {"scored", "pass_rate"}
    assert api.post(f"agents/{agent.pk}/publish").json()["number"] == 1


def test_a_gate_says_what_a_draft_and_an_older_version_lack(ann, api):
    agent = make_agent(ann)
    make_version(agent)
    make_version(agent)
    gate = make_gate(agent, count=4)
    path = f"agents/{agent.pk}/gate"
    experiment = api.post(f"{path}/run", {"version": 1}).json()["id"]
    finish_experiment(Experiment.objects.get(pk=experiment))

    assert api.get(f"{path}?version=1").json()["experiment"] == experiment
    assert api.get(f"{path}?version=7").status_code == 404
    assert api.post(f"{path}/run", {"version": 7}).status_code == 404
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert not Gate.objects.filter(pk=gate.pk).exists()
    assert AuditEntry.objects.filter(noun="gate", action="deleted").exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dataset": "missing"}, "dataset"),
        ({"dataset": "unsaved"}, "dataset"),
        ({"evaluators": []}, "evaluators"),
        ({"evaluators": ["missing"]}, "evaluators"),
        ({"min_pass_rate": 90}, "min_pass_rate"),
        ({"max_p95_seconds": 0}, "max_p95_seconds"),
        ({"max_p95_seconds": "5"}, "max_p95_seconds"),
        ({"must_pass_tag": "t" * 41}, "must_pass_tag"),
        ({"repetitions": 0}, "repetitions"),
        ({"tool_mode": "wild"}, "tool_mode"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_wrong_gate_is_named_and_not_set(ann, api, change, field):
    agent = make_agent(ann)
    make_dataset(ann, name="unsaved")
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
    }

    answer = api.put(f"agents/{agent.pk}/gate", {**body, **change})

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert not Gate.objects.exists()


def test_what_somebody_else_has_selected_can_stay(ann, api):
    agent = make_agent(ann)
    make_gate(agent)
    root = make_user("root", is_superuser=True)
    boss = Api(root, scopes=ALL)
    path = f"agents/{agent.pk}/gate"
    read = api.get(path).json()
    kept = {name: read[name] for name in ("dataset", "evaluators")}

    answer = boss.put(path, {**kept, "min_pass_rate": 0.5})

    assert answer.json()["min_pass_rate"] == 0.5
    eve = Api(make_user("eve"), scopes=ALL)
    assert eve.get(path).status_code == 404
    assert eve.put(path, kept).status_code == 404


def fail_newest_version(ann, api) -> Experiment:
    """Run version 4 of an agent on an example that it fails."""
    agent = make_agent(ann)
    for _ in range(4):
        make_version(agent)
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": agent.slug, "version": 4}],
    }
    source = Experiment.objects.get(pk=api.post("experiments", body).json()["id"])
    turn(source)
    end_runs(source, output="no")
    turn(source)
    return source


def test_the_first_failing_version_is_searched_for(ann, api):
    source = fail_newest_version(ann, api)
    path = f"experiments/{source.pk}"
    [cell] = api.get(f"{path}/runs").json()["data"]

    started = api.post(f"{path}/bisect", {"cell": cell["id"]})
    assert started.status_code == 201
    search = Experiment.objects.get(pk=started.json()["id"])
    location = f"/api/v1/experiments/{search.pk}/bisection"
    assert started.headers["Location"] == location
    finish_bisection(search, first_bad=3)

    found = api.get(f"experiments/{search.pk}/bisection").json()
    assert (found["result"], found["source"]) == ("found", source.pk)
    assert (found["last_good"], found["first_bad"]) == (2, 3)
    assert [one["number"] for one in found["versions"]] == [1, 2, 3, 4]
    runs = [run for one in found["versions"] for run in one["runs"]]
    assert Run.objects.filter(pk__in=runs).count() == len(runs) >= 3


def test_a_search_without_a_failure_is_refused(ann, api):
    agent = make_agent(ann)
    make_version(agent)
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": agent.slug}],
    }
    source = Experiment.objects.get(pk=api.post("experiments", body).json()["id"])
    turn(source)
    end_runs(source)
    turn(source)
    path = f"experiments/{source.pk}"
    [cell] = api.get(f"{path}/runs").json()["data"]

    passed = api.post(f"{path}/bisect", {"cell": cell["id"]})
    missing = api.post(f"{path}/bisect", {"cell": cell["id"] + 1})
    negative = api.post(f"{path}/bisect", {"cell": cell["id"], "budget": -1})

    assert (passed.status_code, fields_of(passed)) == (422, ["cell"])
    assert (missing.status_code, fields_of(missing)) == (422, ["cell"])
    assert (negative.status_code, fields_of(negative)) == (422, ["budget"])
    assert api.get(f"{path}/bisection").status_code == 404
    assert Experiment.objects.count() == 1


def test_a_gate_is_not_replaced_by_who_has_not_read_it(ann, api):
    agent = make_agent(ann)
    gate = make_gate(agent)
    path = f"agents/{agent.pk}/gate"
    body = {"dataset": gate.dataset.slug, "evaluators": ["contains"]}
    read = api.get(path).headers["ETag"]

    changed = api.put(path, body | {"min_pass_rate": 0.5}, If_Match=read)

    assert changed.status_code == 200
    assert api.put(path, body, If_Match=read).status_code == 412
    assert api.delete(path, If_Match=read).status_code == 412
    run = api.post(f"{path}/run", {}).json()["id"]
    finish_experiment(Experiment.objects.get(pk=run))
    fresh = changed.headers["ETag"]  # experiments do not alter it
    assert api.delete(path, If_Match=fresh).status_code == 204


def test_a_tag_that_no_example_has_is_refused(ann, api):
    gate = make_gate(make_agent(ann))
    body = {"dataset": gate.dataset.slug, "evaluators": ["contains"]}

    refused = api.put(f"agents/{gate.agent_id}/gate", body | {"must_pass_tag": "vip"})

    assert fields_of(refused) == ["must_pass_tag"]
    assert "has the tag 'vip'" in refused.json()["errors"][0]["message"]


def test_the_gate_of_an_archived_agent_is_not_run(ann, api):
    gate = make_gate(make_agent(ann, archived_at=timezone.now()))

    refused = api.post(f"agents/{gate.agent_id}/gate/run", {})

    assert "The agent is archived" in refused.text
    assert refused.status_code == 403
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("source", "asked", "used"),
    [
        ("live", None, "hold_back"),
        ("live", "live", "live"),
        ("replay_strict", None, "replay_strict"),
    ],
)
def test_a_search_makes_no_calls_unless_asked_to(ann, api, source, asked, used):
    failed = fail_newest_version(ann, api)
    Experiment.objects.update(tool_mode=source)
    body = {"cell": failed.cells.get().pk, "tool_mode": asked}

    made = api.post(f"experiments/{failed.pk}/bisect", body)

    assert made.json()["tool_mode"] == used
