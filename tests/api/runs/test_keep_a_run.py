"""`POST /api/v1/runs/{id}/keep`, and keeping a run from its start."""

import pytest

from runs.models import Run
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


def test_keeps_a_run_forever_and_no_longer():
    run = make_run(status="succeeded")
    api = Api(run.owner)

    assert api.post(f"runs/{run.pk}/keep").json()["keep_forever"] is True
    assert Run.objects.get().keep_forever
    answer = api.post(f"runs/{run.pk}/keep", {"keep_forever": False})
    assert answer.json()["keep_forever"] is False
    assert not Run.objects.get().keep_forever


def test_refuses_what_is_no_boolean():
    run = make_run()
    answer = Api(run.owner).post(f"runs/{run.pk}/keep", {"keep_forever": "yes"})

    assert (answer.status_code, fields_of(answer)) == (422, ["keep_forever"])


def test_hides_a_run_of_somebody_else():
    assert Api(make_user()).post(f"runs/{make_run().pk}/keep").status_code == 404


@pytest.mark.parametrize("keep", [True, False])
def test_a_run_can_be_kept_from_its_start(keep):
    agent = make_agent()
    body = {"agent": agent.slug, "inputs": {"input": "hi"}, "keep_forever": keep}

    answer = Api(agent.owner).post("runs", body)

    assert (answer.status_code, answer.json()["keep_forever"]) == (201, keep)
    assert Run.objects.get().keep_forever is keep


def test_the_default_does_not_change_the_digest_of_a_repeated_request():
    agent = make_agent()
    body = {"agent": agent.slug, "inputs": {"input": "hi"}}
    api, key = Api(agent.owner), {"Idempotency_Key": "k"}

    first = api.post("runs", body, **key)
    again = api.post("runs", {**body, "keep_forever": False}, **key)
    other = api.post("runs", {**body, "keep_forever": True}, **key)

    assert [first.status_code, again.status_code, other.status_code] == [201, 200, 409]
