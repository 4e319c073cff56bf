"""One run beside the list."""

import pytest

from runs.models import Run, RunTag
from tests.make import make_run, make_step, make_user
from tests.support.html import join_lines

pytestmark = pytest.mark.django_db


def peek(client, run):
    return join_lines(client.get(f"/runs/{run.pk}/peek/").content.decode())


def test_shows_input_answer_and_steps(client, ann):
    run = make_run(
        ann,
        status="succeeded",
        inputs={"input": "Is it <raining>?"},
        output="It is **dry**.",
    )
    make_step(run, tool="get_weather", status="succeeded", observation="Dry")
    RunTag.objects.create(run=run, name="weekend")

    page = peek(client, run)

    assert "Is it &lt;raining&gt;?" in page
    assert "<strong>dry</strong>" in page
    assert "get_weather" in page
    assert ">weekend</span>" in page
    assert "hx-trigger" not in page


def test_says_why_there_is_no_answer_and_follows_an_unfinished_run(client, ann):
    failed = make_run(ann, status="failed", error_message="Disk full")
    queued = make_run(ann)

    assert "Disk full" in peek(client, failed)
    assert "In the queue" in peek(client, queued)
    assert 'hx-trigger="every 2s"' in peek(client, queued)


def test_an_ended_run_is_rated_where_it_is_read(client, ann):
    run = make_run(ann, status="succeeded", output="Dry")
    here = f"/runs/{run.pk}/peek/"
    fields = {"rating": "bad", "here": here}

    answer = client.post(
        f"/runs/{run.pk}/rate/", fields, headers={"HX-Request": "true"}
    )
    page = peek(client, run)

    assert answer["Location"] == here
    assert 'value="bad" aria-pressed="true"' in page
    assert f'href="/runs/{run.pk}/dataset/"' in page
    assert 'name="rating"' not in peek(client, make_run(ann))


def test_writes_several_inputs_with_their_names(client, ann):
    run = make_run(ann, inputs={"city": "Oslo", "days": 3})

    assert "city: Oslo\ndays: 3" in client.get(f"/runs/{run.pk}/peek/").text


def test_hides_what_is_someone_elses(client, ann):
    run = make_run(make_user())

    assert client.get(f"/runs/{run.pk}/peek/").status_code == 404
    assert Run.objects.filter(pk=run.pk).exists()
