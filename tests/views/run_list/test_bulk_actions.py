"""What is done to chosen runs."""

import re

import pytest

from runs.models import Run, RunTag
from tests.make import make_agent, make_run, make_spec, make_step, make_user

pytestmark = pytest.mark.django_db


def do(client, action, *runs, **fields):
    body = {"do": action, "run": [run.pk for run in runs], **fields}
    return client.post("/runs/selected/", body, follow=True).content.decode()


def test_stops_those_that_are_not_over(client, ann):
    queued, over = make_run(ann), make_run(ann, status="succeeded")

    page = do(client, "stop", queued, over)

    assert "Stopping 1 run." in page
    assert "1 run not changed: already ended." in page
    assert Run.objects.get(pk=queued.pk).status == "canceled"


def test_starts_each_again(client, ann):
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="succeeded") for _ in range(2)]

    assert "2 runs started." in do(client, "again", *runs)
    assert Run.objects.filter(status="queued", agent=agent).count() == 2


def test_says_which_could_not_be_started_again(client, ann):
    agent = make_agent(ann)
    run = make_run(ann, agent=agent, status="succeeded")
    type(agent).objects.update(archived_at="2026-01-01T00:00Z")

    assert f"Run {run.pk} was not re-run" in do(client, "again", run)


def test_a_tag_goes_on_and_off(client, ann):
    runs = [make_run(ann) for _ in range(2)]
    do(client, "tag", runs[0], tag="  good   one ")
    assert [tag.name for tag in RunTag.objects.all()] == ["good one"]

    do(client, "tag", *runs, tag="good one")
    assert RunTag.objects.count() == 2

    do(client, "tag", *runs, tag="good one")
    assert RunTag.objects.count() == 0


@pytest.mark.parametrize("name", ["", " ", "x" * 41])
def test_refuses_a_tag_that_is_none(client, ann, name):
    assert "Enter a tag of 1 to 40" in do(client, "tag", make_run(ann), tag=name)


def test_asks_before_it_deletes(client, ann):
    over, running = make_run(ann, status="succeeded"), make_run(ann, status="running")

    page = do(client, "delete", over, running)
    assert "Delete 1 run?" in page
    assert ">Runs</a><span>Delete</span></nav>" in page
    assert "1 selected run is not deleted" in page
    assert Run.objects.count() == 2

    page = do(client, "delete", over, running, sure="1")
    assert "1 run deleted." in page
    assert list(Run.objects.all()) == [running]


def test_a_run_of_another_run_is_not_deleted_alone(client, ann):
    parent = make_run(ann, status="running")
    step = make_step(parent, status="started", attempts=1)
    child = make_run(ann, parent_step=step, source="parent", status="succeeded")

    do(client, "delete", child, sure="1")

    assert Run.objects.filter(pk=child.pk).exists()


def test_what_is_someone_elses_is_left_alone(client, ann):
    others = make_run(make_user(), status="queued")

    assert "Select runs in the list first." in do(client, "stop", others)
    assert Run.objects.get(pk=others.pk).status == "queued"


def test_two_runs_are_compared(client, ann):
    assert "Select two runs" in do(client, "compare", make_run(ann))


def test_an_unknown_action_does_nothing(client, ann):
    assert "Unknown action" in do(client, "explode", make_run(ann))


@pytest.mark.parametrize("here", ["https://evil.example/", "//evil.example", ""])
def test_goes_back_to_the_list_only(client, ann, here):
    answer = client.post("/runs/selected/", {"do": "stop", "here": here})

    assert answer.headers["Location"] == "/runs/"


def test_more_than_can_be_done_at_once_is_refused_whole(client, ann):
    run = make_run(ann, status="succeeded")
    body = {"do": "delete", "sure": "1", "run": [run.pk, *range(10**6, 10**6 + 500)]}

    page = client.post("/runs/selected/", body, follow=True).content.decode()

    assert "Select at most 500 runs. Nothing was changed." in page
    assert Run.objects.filter(pk=run.pk).exists()


def test_ten_thousand_runs_get_a_page_that_says_so(client, ann):
    body = {"do": "stop", "run": list(range(10_000))}

    answer = client.post("/runs/selected/", body)

    assert answer.status_code == 400
    assert "Nothing was changed." in answer.content.decode()


def make_stopped_run(owner, **fields):
    spec = make_spec(executor={"max_iterations": 3})
    fields = {"stop_reason": "iterations", "rounds": 3, **fields}
    return make_run(owner, status="limit_reached", spec=spec, **fields)


def test_resumes_failed_runs(client, ann):
    runs = [make_run(ann, status="failed") for _ in range(2)]
    over, running = make_run(ann, status="succeeded"), make_run(ann, status="running")

    page = do(client, "resume", *runs, over, running)

    assert "2 runs resumed." in page
    assert "2 runs not resumed: did not fail or reach a limit" in page
    statuses = Run.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["queued", "queued", "succeeded", "running"]


def test_shows_the_doubled_limits_before_it_resumes(client, ann):
    run, failed = make_stopped_run(ann), make_run(ann, status="failed")

    page = do(client, "resume", run, failed)

    assert "Resume 2 runs?" in page
    assert "Rounds: 6" in page
    assert not Run.objects.filter(status="queued").exists()


def test_resumes_with_the_doubled_limits(client, ann):
    run = make_stopped_run(ann)

    assert "1 run resumed." in do(client, "resume", run, sure="1")

    assert Run.objects.get(pk=run.pk).status == "queued"
    assert run.resumes.get().limits == {"max_iterations": 6}


def test_resumes_no_run_of_an_agent_that_is_no_longer_shared(client, ann):
    run = make_run(ann, agent=make_agent(make_user("bob")), status="failed")

    assert "1 run not resumed: You cannot use the agent" in do(client, "resume", run)
    assert Run.objects.get(pk=run.pk).status == "failed"


def test_resumes_nothing_of_someone_else(client, ann):
    run = make_run(make_user("bob"), status="failed")

    do(client, "resume", run)

    assert Run.objects.get(pk=run.pk).status == "failed"


def test_keeps_runs_forever_and_no_longer(client, ann):
    runs = [make_run(ann, keep_forever=True), make_run(ann), make_run()]

    page = do(client, "keep", *runs)
    assert "1 run is kept forever." in page
    assert page.count('title="Kept forever"') == 2
    assert Run.objects.filter(keep_forever=True).count() == 2

    assert "2 runs are no longer kept forever." in do(client, "keep", *runs)
    assert not Run.objects.filter(keep_forever=True).exists()


def test_all_matching_runs_are_shown_before_they_are_changed(client, ann):
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="failed") for _ in range(3)]
    make_run(ann, agent=agent, status="succeeded")
    make_run(make_user(), status="failed")
    body = {"do": "tag", "tag": "look", "all": "1", "here": "/runs/?status=failed"}

    page = client.post("/runs/selected/", body).content.decode()

    assert "Tag 3 runs?" in page
    assert RunTag.objects.count() == 0
    listed = re.findall(r'name="run" value="(\d+)"', page)
    client.post("/runs/selected/", {"do": "tag", "tag": "look", "run": listed})
    assert {tag.run for tag in RunTag.objects.all()} == set(runs)


def test_too_many_matching_runs_are_refused(client, ann, monkeypatch):
    monkeypatch.setattr("runs.views.run_list.bulk_actions.MAX_SELECTED_RUNS", 1)
    for _ in range(2):
        make_run(ann, status="succeeded")

    assert "Select at most 1 runs" in do(client, "delete", all="1", here="/runs/")
