"""`POST /api/v1/runs/{id}/resume`."""

import pytest

from runs.models import Run
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_call, make_run, make_spec, make_step, make_user
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def make_stopped_run(**fields):
    spec = make_spec(executor={"max_iterations": 3, "budget": {"tokens": 900}})
    run = make_run(spec=spec, rounds=3, **{"status": "limit_reached", **fields})
    make_call(run)
    make_step(run)
    return run


def test_queues_a_failed_run_again():
    run = make_stopped_run(status="failed")

    answer = Api(run.owner).post(f"runs/{run.pk}/resume")

    assert answer.status_code == 200
    said = answer.json()
    assert (said["status"], said["is_over"], said["error"]) == ("queued", False, None)
    assert run.resumes.get().by == run.owner
    entry = AuditEntry.objects.get(action="resumed")
    assert (entry.way, entry.by) == ("api", run.owner.get_username())


def test_new_limits_apply_and_the_others_stay():
    run = make_stopped_run()
    body = {"limits": {"max_iterations": 9, "cost": 0.5}}

    answer = Api(run.owner).post(f"runs/{run.pk}/resume", body)

    assert answer.status_code == 200
    assert run.resumes.get().limits == {
        "max_iterations": 9,
        "budget": {"tokens": 900, "cost": 0.5},
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(None, "limits", id="the same limit again"),
        pytest.param({"limits": {"max_iterations": 2}}, "limits", id="used up"),
        pytest.param({"limits": {"max_iterations": -1}}, "limits", id="negative"),
        pytest.param({"limits": {"rounds": 9}}, "limits.rounds", id="unknown limit"),
        pytest.param({"model": "other"}, "model", id="unknown field"),
    ],
)
def test_refuses_limits_that_do_not_fit(body, field):
    run = make_stopped_run()

    answer = Api(run.owner).post(f"runs/{run.pk}/resume", body)

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert Run.objects.get(pk=run.pk).status == "limit_reached"


@pytest.mark.parametrize("status", ["succeeded", "canceled", "running", "waiting"])
def test_refuses_other_runs_with_409(status):
    run = make_run(status=status)

    answer = Api(run.owner).post(f"runs/{run.pk}/resume")

    assert (answer.status_code, fields_of(answer)) == (409, ["status"])


def test_a_stranger_gets_404():
    run = make_run(status="failed")

    answer = Api(make_user()).post(f"runs/{run.pk}/resume")

    assert (answer.status_code, fields_of(answer)) == (404, ["id"])


def test_refuses_an_agent_that_is_no_longer_shared():
    run = make_run(make_user(), agent=make_agent(make_user()), status="failed")

    answer = Api(run.owner).post(f"runs/{run.pk}/resume")

    assert (answer.status_code, fields_of(answer)) == (403, ["agent"])
    assert Run.objects.get(pk=run.pk).status == "failed"


def test_refuses_more_unfinished_runs_than_are_allowed(settings):
    settings.USER_RUNS = 1
    run = make_stopped_run(status="failed")
    make_run(run.owner, agent=run.agent)

    answer = Api(run.owner).post(f"runs/{run.pk}/resume")

    assert answer.status_code == 429
    assert answer["Retry-After"]
