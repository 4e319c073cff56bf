"""Pages of a run that has ended, after it was resumed elsewhere."""

import re

import pytest

from runs.services.runs.resume import resume_run
from tests.make import make_run, make_step

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def find_state(page: str) -> dict[str, str]:
    """Return the header with which a part of the page polls."""
    return HTMX | {"X-List-State": re.search(r'X-List-State": "([^"]+)"', page)[1]}


@pytest.mark.parametrize("part", ["actions", "peek"])
def test_a_part_of_a_failed_run_is_sent_again_once_the_run_is_resumed(
    client, ann, part
):
    run = make_run(ann, status="failed", error_message="Key refused.")
    make_step(run)
    url = f"/runs/{run.pk}/{part}/"
    known = find_state(client.get(url, headers=HTMX).content.decode())
    assert client.get(url, headers=known).status_code == 204

    resume_run(run, by=ann)

    fresh = client.get(url, headers=known)
    assert fresh.status_code == 200
    assert "every 15s" not in fresh.content.decode()


def test_the_actions_of_a_resumed_run_lead_to_its_page(client, ann):
    run = make_run(ann, status="failed", error_message="Key refused.")
    known = find_state(client.get(f"/runs/{run.pk}/").content.decode())
    assert "data-resumed" not in client.get(f"/runs/{run.pk}/").content.decode()

    resume_run(run, by=ann)

    part = client.get(f"/runs/{run.pk}/actions/", headers=known).content.decode()
    assert "data-resumed" in part
    assert f'href="/runs/{run.pk}/">Show the resumed run</a>' in part


@pytest.mark.parametrize("status", ["succeeded", "canceled"])
def test_a_run_that_cannot_be_resumed_does_not_poll(client, ann, status):
    run = make_run(ann, status=status)

    for url in (f"/runs/{run.pk}/", f"/runs/{run.pk}/peek/"):
        assert "X-List-State" not in client.get(url).content.decode()
