"""`POST /api/v1/runs/{id}/cancel`."""

import pytest

from tests.api.make_client import Api, fields_of
from tests.make import make_run, make_user
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def test_ends_a_run_that_waits():
    run = make_run()

    answer = Api(run.owner).post(f"runs/{run.pk}/cancel")

    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["is_over"]) == ("canceled", True)
    run.refresh_from_db()
    assert run.canceled_by == run.owner


def test_requests_the_cancel_of_a_running_run():
    run = make_run(status="running")

    answer = Api(run.owner).post(f"runs/{run.pk}/cancel")

    assert answer.json()["status"] == "running"
    run.refresh_from_db()
    assert run.cancel_requested_at is not None


def test_leaves_an_ended_run_unchanged():
    run = make_run(status="succeeded")

    answer = Api(run.owner).post(f"runs/{run.pk}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")


def test_a_stranger_gets_404():
    run = make_run()

    answer = Api(make_user()).post(f"runs/{run.pk}/cancel")

    assert (answer.status_code, fields_of(answer)) == (404, ["id"])
    run.refresh_from_db()
    assert run.status == "queued"


def test_is_in_the_audit_log_as_done_by_the_api():
    run = make_run()

    Api(run.owner).post(f"runs/{run.pk}/cancel")

    entry = AuditEntry.objects.get(noun="run")
    assert (entry.way, entry.by) == ("api", run.owner.get_username())
