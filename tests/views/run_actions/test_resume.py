"""The page that continues a run with new limits."""

import pytest

from runs.models import Run
from tests.make import make_call, make_run, make_spec, make_step, make_user

pytestmark = pytest.mark.django_db


def stopped(owner, **fields) -> Run:
    spec = make_spec(executor={"max_iterations": 3, "budget": {"tokens": 900}})
    run = make_run(owner, status="limit_reached", spec=spec, **fields)
    make_call(run)
    make_step(run, elapsed=0.1)
    return run


def test_shows_what_is_kept_and_proposes_twice_the_limit(client, ann):
    text = client.get(f"/runs/{stopped(ann).pk}/resume/").content.decode()

    assert "The steps before step 3 are reused" in text
    assert 'name="max_iterations" value="6"' in text
    assert 'name="tokens" value="900"' in text


def test_hides_what_is_someone_elses(client, ann):
    run = stopped(make_user("bob"))

    assert client.get(f"/runs/{run.pk}/resume/").status_code == 404
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 404


def test_goes_on_with_the_new_limits(client, ann):
    run = stopped(ann)
    typed = {
        "max_iterations": "9",
        "max_execution_time": "60",
        "tokens": "",
        "cost": "0.5",
    }
    client.post(f"/runs/{run.pk}/resume/", typed)
    run.refresh_from_db()

    assert run.status == "queued"
    assert run.resumes.get().limits == {
        "max_iterations": 9,
        "max_execution_time": 60.0,
        "budget": {"tokens": None, "cost": 0.5},
    }


def test_limits_that_are_not_sent_stay(client, ann):
    run = stopped(ann)
    client.post(f"/runs/{run.pk}/resume/", {"max_iterations": "9"})

    assert run.resumes.get().limits == {"max_iterations": 9}


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        pytest.param({"max_iterations": "x"}, "Enter a whole number", id="no number"),
        pytest.param({"cost": "-1"}, "0 or more", id="below zero"),
        pytest.param({"max_iterations": "1"}, "Enter a higher limit", id="used up"),
    ],
)
def test_a_wrong_limit_is_said_and_changes_nothing(client, ann, typed, says):
    run = stopped(ann)
    text = client.post(f"/runs/{run.pk}/resume/", typed).content.decode()
    run.refresh_from_db()

    assert says in text
    assert run.status == "limit_reached"


def test_any_other_run_leads_back_to_its_page(client, ann):
    run = make_run(ann, status="succeeded")
    text = client.get(f"/runs/{run.pk}/resume/", follow=True).content.decode()

    assert "Only a run that failed or reached a limit can be resumed." in text
