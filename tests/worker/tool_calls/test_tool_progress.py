"""Progress that a function reports, on the page of the run that calls it."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client

from runs.models import AgentStep, Run
from runs.store.claims import ClaimedRun, LeaseLost
from runs.store.step_progress import (
    ProgressReport,
    report_step_progress,
    write_progress,
)
from runs.worker.execute_run import execute_run
from tests.fakes.model_server import model_server
from tests.make import make_run, make_step
from tests.support.timing import wait_until
from tests.worker.functions import progress_seen
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def running() -> Iterator[Run]:
    """A run whose call has reported progress and goes on until the test says so."""
    progress_seen.clear()
    with model_server(script=[call("count_pages"), "Done."]) as server:
        run = started(agent_on(server, "count_pages"))
        thread = threading.Thread(target=execute_in_thread, args=(run.pk,))
        thread.start()
        try:
            wait_until(lambda: run.steps.exclude(progress="").exists())
            yield run
        finally:
            progress_seen.set()
            thread.join(30)


def execute_in_thread(pk: int) -> None:
    execute_run(pk)
    connection.close()


def test_the_run_page_and_api_show_the_newest_progress(running: Run):
    client = Client()
    client.force_login(running.owner)

    wait_until(lambda: running.steps.get().progress == "3 of 10 pages")

    assert "3 of 10 pages" in client.get(f"/runs/{running.pk}/").content.decode()
    steps = client.get(f"/api/v1/runs/{running.pk}").json()["steps"]
    assert steps[0]["progress"] == "3 of 10 pages"


def test_a_step_that_has_ended_shows_its_result_only(running: Run):
    client = Client()
    client.force_login(running.owner)

    progress_seen.set()
    wait_until(lambda: Run.objects.get(pk=running.pk).status == "succeeded")

    assert running.steps.get().observation == running.owner.username
    assert "of 10 pages" not in client.get(f"/runs/{running.pk}/").content.decode()


def test_a_report_from_before_its_step_was_stored_is_not_lost():
    """The thread of the run may be storing the step without it."""
    run = make_run(status="running")
    stored = make_step(run, status="started")
    step = AgentStep(run=run, index=stored.index, status="started")

    report_step_progress(ClaimedRun(run.pk, run.fence), step, "1 of 10 pages")
    step.pk = stored.pk

    wait_until(lambda: run.steps.get().progress == "1 of 10 pages")


def test_progress_of_a_run_that_is_over_is_not_stored():
    run = make_run(status="succeeded")
    step = make_step(run)
    seq = run.seq

    with pytest.raises(LeaseLost):
        write_progress(step.pk, ProgressReport(ClaimedRun(run.pk, run.fence), "late"))

    assert AgentStep.objects.get(pk=step.pk).progress == ""
    assert Run.objects.get(pk=run.pk).seq == seq
