"""The button that keeps a run forever."""

import pytest

from runs.models import Run
from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db


def test_keeps_the_run_forever_and_releases_it(client, ann):
    run = make_run(ann, status="succeeded")
    url = f"/runs/{run.pk}/keep/"

    page = client.post(url, {"keep": "1"}, follow=True).content.decode()
    assert "Kept forever" in page
    assert Run.objects.get().keep_forever

    part = client.post(url, {"keep": "0"}, headers={"HX-Request": "true"})
    assert (
        part.content.decode().strip().startswith('<div class="btns" id="run-actions"')
    )
    assert "Keep forever" in part.content.decode()
    assert not Run.objects.get().keep_forever


def test_hides_what_is_someone_elses(client, ann):
    run = make_run(make_user())

    assert client.post(f"/runs/{run.pk}/keep/").status_code == 404
    assert not Run.objects.get().keep_forever
