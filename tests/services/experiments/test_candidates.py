"""Candidates with another model, prompt or parameters."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection

from runs.engine.types import PromptSpec
from runs.models import Agent, Experiment, ExperimentCandidate, Run
from runs.services.errors import FieldsRefused, NotAllowed
from runs.services.experiments.bisect import BisectionPlan, start_bisection
from runs.services.experiments.changes import CandidateChanges, use_library_prompt
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.repeat import repeat_experiment
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import dump_spec, get_or_create_spec, load_spec
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_prompt, make_user, make_version
from tests.makers.experiments import (
    end_runs,
    finish_bisection,
    make_examples,
    make_revision,
    turn,
)
from tests.worker.run_parts import agent_on, go_on

pytestmark = pytest.mark.django_db

migration = import_module("runs.migrations.0069_candidate_changes")


def compare(
    agent: Agent, *choices: CandidateChoice, by: User | None = None, examples: int = 1
) -> Experiment:
    owner = by or agent.owner
    return create_experiment(
        make_examples(owner, examples),
        choices,
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(),
    )


def compare_changes(agent: Agent, **changes) -> ExperimentCandidate:
    """Return the changed draft of an experiment whose baseline is the draft."""
    changed = CandidateChoice(agent, changes=CandidateChanges(**changes))
    experiment = compare(agent, CandidateChoice(agent), changed)
    return experiment.candidates.select_related("spec").get(position=1)


def errors_of(agent: Agent, **changes) -> dict[str, str]:
    with pytest.raises(FieldsRefused) as caught:
        compare_changes(agent, **changes)
    assert not Experiment.objects.exists()
    return {one.field: one.message for one in caught.value.errors}


def test_the_frozen_spec_has_exactly_the_changes():
    agent = make_agent(
        parameters={"temperature": 1, "top_p": 0.9, "seed": 7}, prompt=make_prompt()
    )
    before = dump_spec(freeze_agent(agent))

    candidate = compare_changes(
        agent,
        model="model-b",
        instructions="Answer in one word.",
        parameters={"temperature": 0.2, "max_tokens": 50, "top_p": None},
    )

    after = dict(candidate.spec.body)
    assert after.pop("model") == before.pop("model") | {
        "model": "model-b",
        "parameters": {"temperature": 0.2, "seed": 7, "max_tokens": 50},
    }
    prompt = after.pop("prompt")
    assert prompt["messages"][0] == {
        "role": "system",
        "template": "Answer in one word.",
    }
    before.pop("prompt")
    assert after == before
    assert candidate.label == (
        "Draft, model-b, other instructions, temperature 0.2, max_tokens 50, "
        "without top_p"
    )


def test_other_parameters_of_a_version_leave_its_prompt_and_prices():
    agent = make_agent()
    old = freeze_agent(agent).model_copy(update={"prompt": PromptSpec(template="Old")})
    version = make_version(agent, spec=get_or_create_spec(old))
    changes = CandidateChanges(parameters={"temperature": 0})

    experiment = compare(agent, CandidateChoice(agent, version, changes))

    candidate = experiment.candidates.get()
    spec = load_spec(candidate.spec)
    assert spec.model.parameters == {"temperature": 0}
    assert spec.model_copy(update={"model": old.model}) == old
    assert candidate.label == "Version 1, temperature 0"


def test_a_prompt_of_the_library_stays_as_it_was():
    agent = make_agent()
    prompt = make_prompt(agent.owner, name="Polite")
    changes = use_library_prompt(CandidateChanges(), prompt)
    experiment = compare(agent, CandidateChoice(agent, changes=changes))
    first = experiment.candidates.get()
    type(prompt).objects.all().delete()

    again = repeat_experiment(experiment, by=agent.owner).candidates.get()

    assert first.label == again.label == 'Draft, prompt "polite"'
    assert first.spec_id == again.spec_id
    assert load_spec(again.spec).prompt == changes.prompt_text


def test_a_repeated_experiment_keeps_the_changes_and_takes_the_draft_as_it_is():
    agent = make_agent(parameters={"seed": 1})
    changes = CandidateChanges(instructions="Be brief.", parameters={"temperature": 0})
    experiment = compare(
        agent, CandidateChoice(agent), CandidateChoice(agent, changes=changes)
    )
    agent.model, agent.parameters = "model-b", {"seed": 2}
    agent.save()

    plain, changed = repeat_experiment(experiment, by=agent.owner).candidates.all()

    assert plain.changes == {}
    models = [load_spec(one.spec).model for one in (plain, changed)]
    assert [one.model for one in models] == ["model-b", "model-b"]
    assert models[0].parameters == {"seed": 2}
    assert models[1].parameters == {"seed": 2, "temperature": 0}
    assert CandidateChanges.model_validate(changed.changes) == changes


def test_two_candidates_with_other_instructions_have_different_labels():
    agent = make_agent()
    texts = ("Be brief.", "Be polite.", "Be exact.")

    experiment = compare(
        agent,
        *(
            CandidateChoice(agent, changes=CandidateChanges(instructions=text))
            for text in texts
        ),
    )

    assert [one.label for one in experiment.candidates.all()] == [
        "Draft, other instructions",
        "Draft, other instructions (2)",
        "Draft, other instructions (3)",
    ]


def test_a_variable_that_examples_lack_is_an_error_of_the_prompt():
    agent = make_agent()
    field = "candidates.1.instructions"

    errors = errors_of(agent, instructions="Write to {customer}.")
    assert errors == {field: "Examples without a value for customer: 1."}

    prompt = make_prompt(agent.owner, template="{town}: {input}", messages=None)
    changes = use_library_prompt(CandidateChanges(), prompt)
    errors = errors_of(agent, **changes.model_dump())
    assert errors == {"candidates.1.prompt": "Examples without a value for town: 1."}


def test_a_brace_without_a_name_is_an_error_of_the_prompt():
    errors = errors_of(make_agent(), instructions="Answer {this way}.")

    assert list(errors) == ["candidates.1.instructions"]
    assert "'{this way}' is not a variable" in errors["candidates.1.instructions"]


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"temperature": 3}, "parameters.temperature"),
        ({"temperature": "hot"}, "parameters.temperature"),
        ({"temperature": True}, "parameters.temperature"),
        ({"max_tokens": 0}, "parameters.max_tokens"),
        ({"max_tokens": 1.5}, "parameters.max_tokens"),
        ({"stream": False}, "parameters"),
        ({"model": "model-b"}, "parameters"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, field):
    assert list(errors_of(make_agent(), parameters=parameters)) == [
        f"candidates.1.{field}"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "model-b"},
        {"instructions": "Say yes."},
        {"parameters": {"temperature": 0}},
    ],
)
def test_only_who_may_edit_the_agent_changes_what_it_runs(changes):
    agent = make_agent(visibility="everyone")
    version = make_version(agent)
    changed = CandidateChoice(agent, version, CandidateChanges(**changes))

    with pytest.raises(NotAllowed, match="another model, another prompt or"):
        compare(agent, changed, by=make_user())

    assert not Experiment.objects.exists()
    assert compare(agent, changed).candidates.get().changes == changes


def test_versions_of_a_search_have_the_changes_of_the_failing_candidate():
    agent = make_agent()
    versions = [make_version(agent) for _ in range(3)]
    changes = CandidateChanges(parameters={"temperature": 0})
    experiment = compare(agent, CandidateChoice(agent, versions[-1], changes))
    turn(experiment)
    end_runs(experiment, output="no")
    turn(experiment)

    found = start_bisection(
        experiment.cells.get(), by=agent.owner, plan=BisectionPlan()
    )
    found = finish_bisection(found, first_bad=2)

    specs = [load_spec(one.spec) for one in found.candidates.all()]
    assert len(specs) == 3
    assert {one.model.parameters["temperature"] for one in specs} == {0}
    assert found.candidates.last().label == "Version 2, temperature 0"


def test_the_migration_notes_models_that_only_labels_told():
    agent = make_agent()
    other = CandidateChanges(model="model-b")
    experiment = compare(
        agent, CandidateChoice(agent), CandidateChoice(agent, changes=other)
    )
    experiment.candidates.update(changes={})

    migration.note_other_models(apps, SimpleNamespace(connection=connection))

    noted = [one.changes for one in experiment.candidates.all()]
    assert noted == [{}, {"model": "model-b"}]


@pytest.mark.django_db(transaction=True)
def test_the_model_gets_the_changed_prompt_and_parameters():
    with model_server() as server:
        agent = agent_on(server, parameters={"temperature": 1})
        changes = CandidateChanges(
            instructions="Answer in one word.", parameters={"temperature": 0.2}
        )
        experiment = compare(agent, CandidateChoice(agent, changes=changes))
        turn(experiment)

        run = go_on(Run.objects.get())

    body = server.requests[-1].body
    assert run.status == "succeeded"
    assert body["messages"][0] == {"role": "system", "content": "Answer in one word."}
    assert body["temperature"] == 0.2
    recorded = load_spec(run.spec).prompt
    assert recorded.messages[0].template == "Answer in one word."
