"""Datasets, evaluators and experiments through the API, from examples to scores."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from runs.models import Dataset, Example, Experiment, ExperimentCandidate, Run
from runs.services.agents.manage import archive_definition, unarchive_definition
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.gates.edit import GatePlan, save_gate
from runs.store.specs import load_spec
from tests.api.make_client import Api, fields_of
from tests.make import (
    make_agent,
    make_dataset,
    make_prompt,
    make_provider,
    make_run,
    make_user,
    make_version,
)
from tests.makers.experiments import end_runs, make_examples, make_revision, turn
from tests.makers.gates import make_gate

pytestmark = pytest.mark.django_db


def make_dataset_by_api(api: Api, *questions: str) -> dict:
    dataset = api.post("datasets", {"name": "Refunds"}).json()
    examples = [
        {"inputs": {"input": text}, "expected_answer": "yes", "tags": ["t"]}
        for text in questions
    ]
    api.post(f"datasets/{dataset['id']}/examples", {"examples": examples})
    return dataset


def test_a_dataset_is_filled_and_saved(api):
    dataset = make_dataset_by_api(api, "one", "two")
    path = f"datasets/{dataset['id']}"

    saved = api.post(f"{path}/versions", {"seen": 0})
    assert (saved.status_code, saved.json()["examples"]) == (201, 2)
    api.put(f"{path}/examples/1", {"inputs": {"input": "uno"}})
    assert api.delete(f"{path}/examples/2").status_code == 204
    changed = api.get(f"{path}/examples").json()["data"]
    before = api.get(f"{path}/examples?version=1").json()["data"]

    assert [(one["number"], one["change"]) for one in changed] == [
        (1, "edited"),
        (2, "removed"),
    ]
    assert [one["inputs"] for one in before] == [{"input": "one"}, {"input": "two"}]
    assert api.get(path).json()["unsaved_changes"] == 2
    versions = api.get(f"{path}/versions").json()["data"]
    assert [(one["number"], one["added"]) for one in versions] == [(1, 2)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("datasets", {"name": "Refunds", "inputs": ["question"]}),
        ("evaluators", {"name": "Refunds", "kind": "exact"}),
    ],
)
def test_datasets_and_evaluators_are_shared_renamed_archived_and_copied(
    ann, api, path, body
):
    crew = Group.objects.create(name="crew")
    ann.groups.add(crew)
    ben = make_user("ben")
    ben.groups.add(crew)
    made = api.post(path, {**body, "visibility": "groups", "groups": ["crew"]})
    one = f"{path}/{made.json()['id']}"

    changed = api.patch(one, {"name": "Returns"}, If_Match=made.headers["ETag"])

    before = made.json()
    assert made.status_code == 201
    assert before["groups"] == ["crew"]
    assert changed.json() == {
        **before,
        "name": "Returns",
        "updated_at": changed.json()["updated_at"],
    }
    theirs = Api(ben, scopes=["read", "build"])
    assert theirs.get(one).status_code == 200
    assert theirs.patch(one, {"name": "Mine"}).status_code == 403
    stale = api.patch(one, {"name": "Refunds"}, If_Match=made.headers["ETag"])
    assert stale.status_code == 412
    assert fields_of(api.patch(one, {"visibility": "x"})) == ["visibility"]
    assert api.patch(one, {"visibility": "private"}).json()["groups"] == []
    assert theirs.get(one).status_code == 404
    assert api.post(f"{one}/archive").json()["archived_at"]
    assert api.get(path).json()["data"] == []
    assert len(api.get(f"{path}?archived=true").json()["data"]) == 1
    assert api.post(f"{one}/unarchive").json()["archived_at"] is None
    assert api.post(f"{one}/duplicate").json()["id"] != before["id"]


def test_inputs_of_a_dataset_change_but_those_of_examples_stay(api):
    path = f"datasets/{make_dataset_by_api(api, 'one')['id']}"

    changed = api.patch(path, {"inputs": ["tone"], "description": "Why."}).json()

    assert (changed["inputs"], changed["description"]) == (["tone", "input"], "Why.")


def test_a_copy_has_the_saved_examples_and_the_settings(api):
    dataset = f"datasets/{make_dataset_by_api(api, 'one', 'two')['id']}"
    api.post(f"{dataset}/versions", {"seen": 0})
    limits = {"name": "Short", "kind": "limits", "config": {"tokens": 9}}
    evaluator = f"evaluators/{api.post('evaluators', limits).json()['id']}"

    copy = api.post(f"{dataset}/duplicate").json()
    twin = api.post(f"{evaluator}/duplicate").json()

    examples = api.get(f"datasets/{copy['id']}/examples").json()["data"]
    assert (copy["version"], len(examples)) == (1, 2)
    assert (twin["revision"], twin["config"]["tokens"]) == (1, 9)


def test_an_example_keeps_the_run_that_it_comes_from(ann, api):
    dataset = make_dataset_by_api(api)
    path = f"datasets/{dataset['id']}/examples"
    mine, theirs = make_run(ann), make_run()
    example = {"inputs": {"input": "x"}}

    refused = api.post(
        path, {"examples": [example, {**example, "source_run": theirs.pk}]}
    )
    added = api.post(path, {"examples": [{**example, "source_run": mine.pk}, example]})

    assert fields_of(refused) == ["examples.1.source_run"]
    assert f"Run {theirs.pk} was not found" in refused.json()["detail"]
    assert [one["source_run"] for one in added.json()["data"]] == [mine.pk, None]
    assert Example.objects.filter(source_run=mine).count() == 1


def test_a_version_saved_meanwhile_is_a_conflict(api):
    dataset = make_dataset_by_api(api, "one")
    path = f"datasets/{dataset['id']}/versions"
    api.post(path, {"seen": 0})

    assert api.post(path, {"seen": 0}).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"examples": []}, "examples"),
        ({"examples": [{"inputs": {"input": " "}}]}, "inputs"),
        ({"examples": [{"inputs": {"input": "x" * 100_001}}]}, "examples.0.inputs"),
        ({"examples": [{"inputs": {"input": "x"}, "tag": "t"}]}, "examples.0.tag"),
    ],
)
def test_a_wrong_example_is_named_and_none_is_added(api, body, field):
    dataset = make_dataset_by_api(api)

    answer = api.post(f"datasets/{dataset['id']}/examples", body)

    assert answer.status_code == 422
    assert fields_of(answer)[0].startswith(field)
    assert not Dataset.objects.get().examples.exists()


def test_settings_of_an_evaluator_are_checked(api):
    body = {"name": "Short", "kind": "limits", "config": {"tokens": -1}}
    assert fields_of(api.post("evaluators", body)) == ["config.tokens"]
    assert fields_of(api.post("evaluators", {**body, "kind": "luck"})) == ["kind"]

    made = api.post("evaluators", {**body, "config": {"tokens": 100}}).json()
    path = f"evaluators/{made['id']}"
    changed = api.patch(path, {"config": {"tokens": 200}}).json()

    assert (changed["revision"], changed["config"]["tokens"]) == (2, 200)


def test_the_provider_of_a_judge_is_checked(ann, api):
    config = {"provider": "nope", "model": "m", "rubric": "Polite?"}
    body = {"name": "Tone", "kind": "judge", "config": config}

    assert fields_of(api.post("evaluators", body)) == ["config.provider"]
    config["provider"] = make_provider(ann).slug
    made = api.post("evaluators", body)

    assert made.status_code == 201
    wrong = {"config": {**config, "provider": "nope"}}
    answer = api.patch(f"evaluators/{made.json()['id']}", wrong)
    assert fields_of(answer) == ["config.provider"]


def test_what_cannot_be_judged_or_replayed_is_not_started(ann, api):
    dataset, agent = make_examples(ann, 2), make_agent(ann)
    provider = make_provider(ann)
    config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
    judge = make_revision(ann, name="Tone", kind="judge", config=config)
    body = {
        "dataset": dataset.slug,
        "candidates": [{"agent": agent.slug}],
        "evaluators": [judge.evaluator.slug],
    }

    replay = {**body, "tool_mode": "replay_strict"}
    Example.objects.filter(number=1).update(source_run=make_run())
    assert fields_of(api.post("experiments", replay)) == ["tool_mode"]
    archive_definition(provider)
    assert fields_of(api.post("experiments", body)) == ["evaluators"]
    assert not Experiment.objects.exists()

    unarchive_definition(provider)
    Example.objects.filter(number=2).update(source_run=make_run(ann))
    assert api.post("experiments", replay).status_code == 201


def test_an_experiment_is_started_read_and_scored(ann, api):
    agent = make_agent(ann)
    make_version(agent)
    body = {
        "dataset": make_examples(ann, 2).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": agent.slug, "version": 1}, {"agent": agent.slug}],
        "budget": 1.5,
    }
    started = api.post("experiments", body)
    assert (started.status_code, started.json()["total"]) == (201, 4)
    experiment = Experiment.objects.get()
    turn(experiment)
    end_runs(experiment)
    turn(experiment)

    read = api.get(f"experiments/{experiment.pk}").json()
    runs = api.get(f"experiments/{experiment.pk}/runs").json()["data"]

    assert (read["status"], read["budget"]) == ("done", 1.5)
    assert [one["pass_rate"] for one in read["candidates"]] == [1.0, 1.0]
    assert read["comparisons"][0]["kind"] == "no_difference"
    [tag] = read["tags"]
    assert (tag["tag"], tag["passed"], tag["decided"]) == ("t", [2, 2], [2, 2])
    assert tag["comparisons"][0]["kind"] == "no_difference"
    assert read["gate"] is None
    plan = GatePlan(experiment.dataset, [experiment.evaluators.get().evaluator])
    save_gate(agent, plan, by=ann)
    read = api.get(f"experiments/{experiment.pk}").json()
    assert [(one["kind"], one["is_met"]) for one in read["gate"]] == [
        ("scored", True),
        ("pass_rate", True),
        ("regression", True),
    ]
    assert sorted((one["example"], one["candidate"]) for one in runs) == [
        *((1, 0), (1, 1), (2, 0), (2, 1)),
    ]
    assert {one["run"] for one in runs} == set(Run.objects.values_list("pk", flat=True))
    assert runs[0]["scores"][0]["passed"] is True
    assert [one["id"] for one in api.get("experiments").json()["data"]] == [
        experiment.pk
    ]


def test_others_run_versions_of_a_shared_agent_but_not_its_draft(ann, api):
    agent = make_agent(make_user("eve"), visibility="everyone")
    make_version(agent)
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
    }

    draft = api.post("experiments", {**body, "candidates": [{"agent": agent.slug}]})
    published = api.post(
        "experiments", {**body, "candidates": [{"agent": agent.slug, "version": 1}]}
    )

    assert (draft.status_code, fields_of(draft)) == (403, ["candidates"])
    assert "draft" in draft.json()["errors"][0]["message"]
    assert published.status_code == 201


def start_one(ann, api):
    """Start an experiment with version 1 and the draft; return its number."""
    agent = make_agent(ann)
    make_version(agent)
    body = {
        "dataset": make_examples(ann, 2).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": agent.slug, "version": 1}],
        "repetitions": 3,
    }
    return api.post("experiments", body).json()["id"]


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ({}, ["Version 1"]),
        ({"candidate": "draft"}, ["Version 1", "Draft"]),
        ({"candidate": "1"}, ["Version 1"]),
    ],
)
def test_an_experiment_is_repeated_with_its_settings(ann, api, body, labels):
    first = start_one(ann, api)

    answer = api.post(f"experiments/{first}/repeat", body)

    again = answer.json()
    assert answer.headers["Location"] == f"/api/v1/experiments/{again['id']}"
    assert (answer.status_code, again["status"], again["repetitions"]) == (
        201,
        "running",
        3,
    )
    assert again["id"] != first
    assert [one["label"] for one in again["candidates"]] == labels


@pytest.mark.parametrize("candidate", ["7", "newest", "-1"])
def test_a_candidate_that_does_not_exist_is_named(ann, api, candidate):
    first = start_one(ann, api)

    answer = api.post(f"experiments/{first}/repeat", {"candidate": candidate})

    assert (answer.status_code, fields_of(answer)) == (422, ["candidate"])
    assert Experiment.objects.count() == 1


def test_a_repetition_needs_what_the_experiment_used(ann, api):
    first = start_one(ann, api)
    Dataset.objects.update(archived_at=timezone.now())

    answer = api.post(f"experiments/{first}/repeat", {})

    assert answer.status_code == 422
    assert "not found" in answer.json()["detail"]


def test_stop_and_resume(ann, api):
    body = {
        "dataset": make_examples(ann, 2).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": make_agent(ann).slug}],
    }
    path = f"experiments/{api.post('experiments', body).json()['id']}"

    assert api.post(f"{path}/resume", {}).status_code == 409
    assert api.post(f"{path}/stop").json()["status"] == "stopped"
    assert api.post(f"{path}/stop").status_code == 409
    assert api.post(f"{path}/resume", {"budget": 2}).json()["status"] == "running"


@pytest.mark.parametrize(
    ("body", "budget"),
    [({}, 1.5), ({"budget": None}, None), ({"budget": 2}, 2.0)],
)
def test_resuming_keeps_a_budget_that_is_left_out(ann, api, body, budget):
    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(budget=Decimal("1.5")),
    )
    path = f"experiments/{experiment.pk}"
    api.post(f"{path}/stop")

    assert api.post(f"{path}/resume", body).json()["budget"] == budget


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dataset": "nothing"}, "dataset"),
        ({"evaluators": ["nothing"]}, "evaluators"),
        ({"candidates": []}, "candidates"),
        ({"repetitions": 99}, "repetitions"),
        ({"budget": 0}, "budget"),
    ],
)
def test_a_wrong_experiment_is_named_and_not_started(ann, api, change, field):
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": make_agent(ann).slug}],
    }
    answer = api.post("experiments", {**body, **change})

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert not Experiment.objects.exists()


def test_a_version_that_the_agent_lacks_is_named(ann, api):
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": make_agent(ann).slug, "version": 7}],
    }
    assert fields_of(api.post("experiments", body)) == ["candidates.0.version"]


def test_what_is_private_is_not_found_by_others(ann):
    dataset = make_examples(ann, 1)
    other = Api(make_user("bob"))

    assert other.get(f"datasets/{dataset.pk}").status_code == 404
    assert other.get("datasets").json()["data"] == []


def test_a_gate_that_is_not_met_is_a_conflict_that_a_reason_overrides(ann, api):
    agent = make_agent(ann)
    make_gate(agent)
    path = f"agents/{agent.pk}/publish"

    refused = api.post(path, {"note": "First"})
    assert (refused.status_code, fields_of(refused)) == (409, ["reason"])
    published = api.post(path, {"reason": "The customer has to have it today."})

    assert published.json()["number"] == 1


def test_candidates_have_another_prompt_and_parameters(ann, api):
    agent = make_agent(ann, parameters={"temperature": 1, "top_p": 0.9})
    prompt = make_prompt(ann, name="Polite")
    candidates = [
        {"agent": agent.slug, "parameters": {"temperature": 0.2, "top_p": None}},
        {"agent": agent.slug, "instructions": "Answer in one word."},
        {"agent": agent.slug, "prompt": prompt.slug},
    ]
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": candidates,
    }

    answer = api.post("experiments", body)

    assert answer.status_code == 201
    found = [one["changes"] for one in answer.json()["candidates"]]
    assert found[0]["parameters"] == {"temperature": 0.2, "top_p": None}
    assert found[1]["instructions"] == "Answer in one word."
    assert found[2]["prompt_text"]["messages"] == prompt.messages
    specs = [load_spec(one.spec) for one in ExperimentCandidate.objects.all()]
    assert specs[0].model.parameters == {"temperature": 0.2}
    assert specs[1].prompt.messages[0].template == "Answer in one word."
    assert specs[2].prompt.messages[0].template == "Be brief."


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"instructions": "Write to {customer}."}, "instructions"),
        ({"instructions": "Answer {this way}."}, "instructions"),
        ({"instructions": "Be brief.", "prompt": "polite"}, "prompt"),
        ({"prompt": "missing"}, "prompt"),
        ({"prompt": "private"}, "prompt"),
        ({"parameters": {"temperature": 9}}, "parameters.temperature"),
        ({"parameters": {"messages": []}}, "parameters"),
        ({"parameters": [1]}, "parameters"),
    ],
)
def test_a_wrong_change_of_a_candidate_is_named(ann, api, change, field):
    agent = make_agent(ann)
    make_prompt(ann, name="Polite")
    make_prompt(make_user("eve"), name="Private")
    body = {
        "dataset": make_examples(ann, 1).slug,
        "evaluators": [make_revision(ann).evaluator.slug],
        "candidates": [{"agent": agent.slug}, {"agent": agent.slug, **change}],
    }

    answer = api.post("experiments", body)

    assert (answer.status_code, fields_of(answer)) == (422, [f"candidates.1.{field}"])
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tags": ["a, b"]}, "tags"),
        ({"tags": [" x"]}, "tags"),
        ({"expected_calls": [{"tool": "a,b"}]}, "expected_calls"),
        ({"expected_calls": [{"tool": "a\n{"}]}, "expected_calls"),
    ],
)
def test_names_that_no_cell_can_hold_are_refused(ann, api, change, field):
    path = f"datasets/{make_dataset(ann).pk}/examples"
    example = {"inputs": {"input": "a"}}

    refused = api.post(path, {"examples": [example | change]})

    assert (refused.status_code, fields_of(refused)) == (422, [f"examples.0.{field}"])
    made = api.post(path, {"examples": [example]}).json()["data"][0]["number"]
    changed = api.put(f"{path}/{made}", example | change)
    assert (changed.status_code, fields_of(changed)) == (422, [field])
