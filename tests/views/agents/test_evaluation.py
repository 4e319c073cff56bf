"""The page of an agent's evaluation: gate, pass rates, experiments and rules."""

import re

import pytest

from runs.models import Gate
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from tests.make import make_agent, make_dataset, make_user, make_version
from tests.makers.experiments import end_run, make_examples, make_revision, turn
from tests.makers.scoring import end_run as end_real_run
from tests.makers.scoring import make_rule, score_all

pytestmark = pytest.mark.django_db


def page_of(client, agent) -> str:
    return client.get(f"/agents/{agent.pk}/evaluation/").content.decode()


def run_versions(agent, dataset, choices, *, right: int):
    """Run an experiment; the last candidate answers so many examples right."""
    revision = make_revision(agent.owner)
    experiment = create_experiment(
        dataset, choices, [revision], by=agent.owner, plan=ExperimentPlan()
    )
    turn(experiment)
    last = experiment.candidates.last()
    for cell in experiment.cells.select_related("example"):
        is_right = cell.candidate_id != last.pk or cell.example.number <= right
        end_run(cell, "yes" if is_right else "no")
    return turn(experiment)


def test_shows_the_pass_rate_of_each_version_in_its_newest_experiment(client, ann):
    agent = make_agent(ann)
    first, second = make_version(agent), make_version(agent)
    dataset = make_examples(ann, 4)
    both = [CandidateChoice(agent, first), CandidateChoice(agent, second)]
    run_versions(agent, dataset, both, right=1)
    run_versions(agent, dataset, both, right=3)
    other = CandidateChoice(agent, second, CandidateChanges(model="another-model"))
    run_versions(agent, dataset, [both[0], other], right=0)

    page = page_of(client, agent)

    rates = re.findall(r"<b>v(\d)</b>\s*(\d+%)", page)
    assert rates == [("1", "100%"), ("2", "75%")]
    assert page.count("ci-dot") == 2
    assert page.count('<tr id="agent-experiment-') == 3


def test_shows_the_gate_and_the_rules(client, ann):
    agent = make_agent(ann)
    Gate.objects.create(agent=agent, dataset=make_dataset(ann, name="Tickets"))
    rule = make_rule(agent)
    end_real_run(agent, "no")
    score_all()

    page = page_of(client, agent)

    assert "passes the examples of" in page
    assert "Tickets</a>" in page
    assert "0 passed, 1 failing" in page
    assert f'id="rule-versions-{rule.pk}"' in page


def test_shows_experiments_and_rules_of_the_viewer_only(client, ann):
    owner = make_user()
    agent = make_agent(owner, visibility="everyone")
    version = make_version(agent)
    dataset = make_examples(owner, 1)
    run_versions(agent, dataset, [CandidateChoice(agent, version)], right=1)
    make_rule(agent, name="Watch")

    page = page_of(client, agent)

    assert "No version has been run on a dataset yet." in page
    assert "Watch" not in page
    assert 'id="agent-gate"' not in page


def test_the_page_of_an_agent_links_it(client, ann):
    agent = make_agent(ann)

    page = client.get(f"/agents/{agent.pk}/").content.decode()

    assert f'href="/agents/{agent.pk}/evaluation/"' in page
