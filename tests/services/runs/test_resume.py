"""Continuing a stopped or failed run."""

import pytest
from django.utils import timezone

from runs.models import Resume, Run
from runs.services.errors import CannotResume
from runs.services.runs.resume import resume_run
from tests.make import make_call, make_run, make_step

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", ["limit_reached", "failed"])
def test_puts_the_run_back_into_the_queue_and_keeps_its_steps(status):
    run = make_run(status=status)
    make_call(run)
    make_step(run)
    resume_run(run, by=run.owner, limits={"max_iterations": 30})

    assert Run.objects.get(pk=run.pk).status == "queued"
    resume = Resume.objects.get(run=run)
    assert (resume.at_index, resume.at_number) == (1, 1)
    assert run.steps.count() == 1


def test_forgets_who_tried_to_stop_the_run():
    run = make_run(status="failed", cancel_requested_at=timezone.now())
    Run.objects.update(canceled_by=run.owner)

    resume_run(run, by=run.owner)

    run.refresh_from_db()
    assert (run.cancel_requested_at, run.canceled_by) == (None, None)


@pytest.mark.parametrize("status", ["succeeded", "canceled", "running", "queued"])
def test_refuses_every_other_run(status):
    with pytest.raises(CannotResume):
        resume_run(make_run(status=status), by=None)
    assert not Resume.objects.exists()


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"max_iterations": -1}, id="below zero"),
        pytest.param({"max_iterations": 10**12}, id="beyond all sense"),
        pytest.param({"max_iterations": 1}, id="used up already"),
        pytest.param({"model": "other"}, id="no limit"),
        pytest.param({"max_iterations": "many"}, id="no number"),
    ],
)
def test_refuses_a_limit_that_makes_no_sense(limits):
    run = make_run(status="limit_reached", rounds=3)
    with pytest.raises(CannotResume):
        resume_run(run, by=run.owner, limits=limits)
    assert Run.objects.get(pk=run.pk).status == "limit_reached"
