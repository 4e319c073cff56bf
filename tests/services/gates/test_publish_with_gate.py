"""Publishing an agent with a gate: only what has passed, or with an audited reason."""

import pytest
from django.utils import timezone

from runs.evaluation.gate import GateResult, GateRules, RuleResult
from runs.models import AgentTool, AgentVersion, Experiment, Gate
from runs.services.agents.publish import publish_agent, publish_draft
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from runs.services.errors import GateNotMet
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.repeat import list_newest_revisions
from runs.services.gates.digest import compute_gate_digest
from runs.services.gates.edit import GatePlan, remove_gate, save_gate
from runs.services.gates.run import start_gate_experiment
from runs.services.gates.state import load_gate_state
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import compute_spec_digest, dump_spec
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import make_revision
from tests.makers.gates import finish_experiment, make_gate
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

REASON = "The customer waits, and two of three are fine."


@pytest.fixture
def agent():
    """An agent with a published version, and a gate since then."""
    agent = make_agent(make_user("ann"))
    publish_agent(agent, by=agent.owner)
    make_gate(agent)
    agent.parameters = {"temperature": 0.5}
    agent.save()
    return agent


def state_of(agent):
    return load_gate_state(agent, freeze_agent(agent))


def run_gate(agent, *, wrong: int = 0) -> Experiment:
    experiment = start_gate_experiment(agent.gate, by=agent.owner)
    finish_experiment(experiment, wrong=wrong)
    return experiment


def test_a_draft_that_was_not_run_is_refused(agent):
    with pytest.raises(GateNotMet, match="requires an experiment with this draft"):
        publish_draft(agent, by=agent.owner)
    assert AgentVersion.objects.count() == 1


def test_a_draft_that_passed_is_published_with_the_result(agent):
    experiment = run_gate(agent)

    version = publish_agent(agent, by=agent.owner)

    result = GateResult.model_validate(version.gate_result)
    assert version.number == 2
    assert (result.is_met, result.experiment) == (True, experiment.pk)
    assert (result.dataset, result.dataset_version) == (agent.gate.dataset.slug, 1)
    assert not AuditEntry.objects.filter(action="overrode").exists()


def test_a_draft_that_fails_needs_a_reason_which_is_audited(agent):
    run_gate(agent, wrong=1)
    with pytest.raises(GateNotMet, match="does not meet the gate"):
        publish_draft(agent, by=agent.owner)
    with pytest.raises(GateNotMet, match="at least 20 characters"):
        publish_draft(agent, by=agent.owner, reason="Because.")

    version = publish_draft(agent, by=agent.owner, reason=REASON).version

    result = GateResult.model_validate(version.gate_result)
    assert (result.is_met, result.reason) == (False, REASON)
    entry = AuditEntry.objects.get(action="overrode")
    assert (entry.by, entry.noun, entry.note) == ("ann", "gate", REASON)


def test_while_the_experiment_runs_nothing_is_published(agent):
    start_gate_experiment(agent.gate, by=agent.owner)

    with pytest.raises(GateNotMet, match="has not ended yet"):
        publish_draft(agent, by=agent.owner)


def edit_draft(agent) -> None:
    agent.parameters = {"temperature": 0.7}
    agent.save()


def add_example(agent) -> None:
    dataset = agent.gate.dataset
    content = ExampleContent(inputs={"input": "more"}, expected_answer="yes")
    add_examples(dataset, [content], by=agent.owner)
    save_dataset_version(dataset, seen=1, by=agent.owner)


def edit_evaluator(agent) -> None:
    evaluator = agent.gate.evaluators.get()
    evaluator.config = {"texts": ["yes"]}
    save_evaluator(evaluator, by=agent.owner)


def use_more_repetitions(agent) -> None:
    agent.gate.repetitions = 2
    agent.gate.save()


@pytest.mark.parametrize(
    "change", [edit_draft, add_example, edit_evaluator, use_more_repetitions]
)
def test_what_passed_must_be_what_is_published(agent, change):
    run_gate(agent)
    assert state_of(agent).status == "met"

    change(agent)
    agent.refresh_from_db()

    assert state_of(agent).status == "missing"


def test_what_called_agents_run_is_part_of_what_passed(agent):
    helper = make_agent(agent.owner)
    deeper = make_agent(agent.owner)
    AgentTool.objects.create(agent=helper, sub_agent=deeper)
    AgentTool.objects.create(agent=agent, sub_agent=helper)
    publish_agent(helper, by=agent.owner)
    publish_agent(deeper, by=agent.owner)
    run_gate(agent)
    edit_draft(deeper)
    assert state_of(agent).status == "met"

    publish_agent(deeper, by=agent.owner)

    assert state_of(agent).status == "missing"
    with pytest.raises(GateNotMet, match="requires an experiment with this draft"):
        publish_draft(agent, by=agent.owner)


def test_a_version_published_since_is_the_new_baseline(agent):
    run_gate(agent)
    publish_agent(agent, by=agent.owner)

    assert state_of(agent).status == "missing"


def test_stricter_rules_judge_what_has_run(agent):
    run_gate(agent, wrong=1)
    agent.gate.rules = {"min_pass_rate": 0.6, "refuses_regression": False}
    agent.gate.save()

    assert state_of(agent).status == "met"


def test_a_worse_draft_is_a_regression_even_above_the_rate(agent):
    remove_gate(agent)
    agent.refresh_from_db()
    make_gate(agent, count=10, min_pass_rate=0.2)
    agent.refresh_from_db()

    run_gate(agent, wrong=7)

    [rule] = state_of(agent).result.unmet
    assert (rule.kind, rule.worse, rule.better) == ("regression", 7, 0)


def test_an_experiment_that_somebody_stopped_counts_only_if_none_ended(agent):
    experiment = run_gate(agent)
    later = start_gate_experiment(agent.gate, by=agent.owner)
    Experiment.objects.filter(pk=later.pk).update(status="stopped")

    assert state_of(agent).experiment == experiment
    Experiment.objects.filter(pk=experiment.pk).delete()
    assert state_of(agent).status == "stopped"


def test_without_a_gate_drafts_are_published(agent):
    assert remove_gate(agent)
    agent.refresh_from_db()

    assert publish_agent(agent, by=agent.owner).gate_result is None


def test_tagged_examples_must_pass(agent):
    agent.gate.rules = {"min_pass_rate": 0.3, "must_pass_tag": "t"}
    agent.gate.rules |= {"refuses_regression": False}
    agent.gate.save()

    run_gate(agent, wrong=1)

    [rule] = state_of(agent).result.unmet
    assert (rule.kind, rule.candidate, rule.required) == ("must_pass", 2.0, 3.0)


def compare(agent, *choices: CandidateChoice) -> Experiment:
    """Create an experiment with the settings of the gate, but these candidates."""
    return create_experiment(
        agent.gate.dataset,
        choices,
        list_newest_revisions(list(agent.gate.evaluators.all())),
        by=agent.owner,
        plan=ExperimentPlan(tool_mode=agent.gate.tool_mode),
    )


def test_the_draft_with_another_model_is_not_judged_instead_of_the_draft(agent):
    newest = CandidateChoice(agent, agent.versions.get())
    strong = CandidateChoice(agent, changes=CandidateChanges(model="strong"))
    experiment = compare(agent, newest, strong, CandidateChoice(agent))
    finish_experiment(experiment, wrong=3, position=2)

    state = state_of(agent)

    assert (state.status, state.experiment) == ("not_met", experiment)


def test_the_draft_of_another_agent_is_not_judged_instead_of_the_draft(agent):
    newest = CandidateChoice(agent, agent.versions.get())
    other = CandidateChoice(make_agent(agent.owner))
    finish_experiment(
        compare(agent, newest, other, CandidateChoice(agent)), wrong=3, position=2
    )

    assert state_of(agent).status == "not_met"


def test_the_newest_version_with_another_model_is_not_the_baseline(agent):
    weak = CandidateChoice(agent, agent.versions.get(), CandidateChanges(model="weak"))
    finish_experiment(compare(agent, weak, CandidateChoice(agent)))

    assert state_of(agent).status == "missing"


def import_result(agent) -> None:
    """Do what an agent file does that brings a result for this draft."""
    result = GateResult(
        rules=(RuleResult(kind="scored", is_met=True),),
        dataset=agent.gate.dataset.slug,
        dataset_version=agent.gate.dataset.version,
        requirements=compute_gate_digest(agent.gate),
    )
    Gate.objects.filter(agent=agent).update(
        imported_digest=compute_spec_digest(dump_spec(freeze_agent(agent))),
        imported_result=result.model_dump(mode="json"),
    )
    agent.refresh_from_db()


def plan_of(agent, **changes) -> GatePlan:
    gate = agent.gate
    plan = {
        "dataset": gate.dataset,
        "evaluators": list(gate.evaluators.all()),
        "rules": GateRules.model_validate(gate.rules),
    }
    return GatePlan(**plan | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": GateRules(min_pass_rate=1)},
        {"repetitions": 2},
        {"tool_mode": "live"},
        {"evaluators": []},
    ],
)
def test_an_imported_result_does_not_survive_a_change_of_the_gate(agent, changes):
    import_result(agent)
    assert state_of(agent).status == "met"
    save_gate(agent, plan_of(agent), by=agent.owner)
    assert state_of(agent).status == "met"

    save_gate(agent, plan_of(agent, **changes), by=agent.owner)

    assert state_of(agent).status == "missing"


def test_an_imported_result_does_not_count_for_later_examples(agent):
    import_result(agent)
    add_example(agent)

    assert state_of(agent).status == "missing"


def test_a_judge_that_could_not_say_anything_opens_no_gate(agent):
    provider = make_provider(agent.owner)
    config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
    judge = make_revision(agent.owner, name="Judge", kind="judge", config=config)
    agent.gate.evaluators.add(judge.evaluator)

    experiment = start_gate_experiment(agent.gate, by=agent.owner)
    provider.archived_at = timezone.now()
    provider.save()
    finish_experiment(experiment)

    assert state_of(agent).status == "not_met"
    with pytest.raises(GateNotMet):
        publish_draft(agent, by=agent.owner)
