"""The limit of unfinished runs of one user."""

import pytest

from runs.models import Run
from runs.services.errors import TooManyRuns
from runs.services.runs.resume import resume_run
from runs.services.runs.start import start_run
from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db
QUESTION = {"input": "What is 1 + 2?"}


@pytest.fixture
def limit(settings):
    settings.USER_RUNS = 1


@pytest.mark.parametrize("source", [Run.Source.PAGE, Run.Source.API])
def test_people_and_programs_are_limited(limit, source):
    run = make_run(status="waiting")

    with pytest.raises(TooManyRuns):
        start_run(run.agent, by=run.owner, inputs=QUESTION, source=source)


@pytest.mark.parametrize("source", [Run.Source.SCHEDULE, Run.Source.PARENT])
def test_schedules_and_runs_are_not(limit, source):
    run = make_run(status="running")

    assert start_run(run.agent, by=run.owner, inputs=QUESTION, source=source)


def test_without_a_limit_none_are_refused(settings):
    settings.USER_RUNS = 0
    run = make_run(status="running")

    assert start_run(run.agent, by=run.owner, inputs=QUESTION)


def test_a_resumed_run_counts_like_a_new_one(limit):
    run = make_run(status="failed")
    make_run(run.owner, agent=run.agent, status="running")

    with pytest.raises(TooManyRuns):
        resume_run(run, by=run.owner)

    run.refresh_from_db()
    assert run.status == "failed"


def test_an_administrator_resumes_runs_of_others_past_the_limit(limit):
    run = make_run(status="failed")
    make_run(run.owner, agent=run.agent, status="running")
    administrator = make_user("root", is_superuser=True)

    resume_run(run, by=administrator)

    run.refresh_from_db()
    assert run.status == "queued"
