"""`manage.py prune`."""

from io import StringIO

import pytest
from django.core.management import call_command

from runs.models import AgentRetention, DeletionJob, Run
from runs.services.retention.jobs import claim_job, create_prune_job
from tests.make import make_agent
from tests.services.retention.rows import make_old_run, set_rules

pytestmark = pytest.mark.django_db


def prune(*words: str) -> str:
    out = StringIO()
    call_command("prune", *words, stdout=out)
    return out.getvalue()


def test_without_rules_it_says_that_everything_is_kept():
    assert prune().startswith("There are no retention rules: everything is kept.")
    assert not DeletionJob.objects.exists()


def test_a_dry_run_prints_what_would_go_and_deletes_nothing():
    agent = make_agent()
    AgentRetention.objects.create(agent=agent, days=3)
    make_old_run()
    make_old_run(agent=agent)
    set_rules(succeeded_runs=30)

    assert prune("--dry-run").splitlines() == [
        "Succeeded runs older than 30 days: 1",
        "Agents with own rules: 1",
        "Nothing was deleted.",
    ]
    assert Run.objects.count() == 2


def test_it_deletes_and_prints_what():
    make_old_run()
    set_rules(succeeded_runs=30)

    assert prune() == "Deleted: 1 runs.\n"
    assert not Run.objects.exists()


def test_it_leaves_a_job_to_the_worker_that_has_it():
    make_old_run()
    set_rules(succeeded_runs=30)
    create_prune_job()
    claim_job()

    assert "A worker is pruning already." in prune()
    assert Run.objects.exists()
