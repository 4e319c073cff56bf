"""Runs of called agents on the pages of their callers."""

import re

import pytest
from django.utils import timezone

from runs.models import Run
from tests.make import (
    fit,
    make_agent,
    make_call,
    make_run,
    make_spec,
    make_step,
    make_user,
)
from tests.support.html import join_lines

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def family(ann, **fields) -> tuple[Run, Run]:
    """Make a run whose second row waits for a child with two rows."""
    parent = make_run(ann, title="Plan a trip", status="waiting")
    step = make_step(
        parent,
        status="started",
        tool="scout",
        tool_input={"input": "Oslo"},
        effect="idempotent",
        attempts=1,
    )
    fields.setdefault("agent", make_agent(ann, name="Scout"))
    child = make_run(ann, parent_step=step, source="parent", **fields)
    make_step(child, call=make_call(child), tool="weather")
    return parent, child


def text(client, address, **headers):
    return join_lines(client.get(address, headers=headers).content.decode())


def test_the_callers_row_names_the_child_and_where_it_is(client, ann):
    parent, child = family(ann, status="awaiting_approval")

    page = text(client, f"/runs/{parent.pk}/")

    row = page.split('id="run-step-2"')[1].split("</li>")[0]
    assert f"run {child.pk}: Oslo" in row
    assert 'data-kind="run"' in row
    assert "awaiting approval" in row
    assert f'hx-get="/runs/{child.pk}/outline/"' in row
    assert "Sunny" not in row


def test_the_callers_step_shows_the_child_and_follows_it(client, ann):
    parent, child = family(ann, status="running")

    pane = text(client, f"/runs/{parent.pk}/?step=2", **HTMX)

    assert f'id="run-brief-{child.pk}"' in pane
    assert f'hx-get="/runs/{child.pk}/brief/"' in pane
    assert f'href="/runs/{child.pk}/">Open run {child.pk}' in pane


def test_the_child_leads_back_to_the_step_that_waits_for_it(client, ann):
    parent, child = family(ann)

    page = text(client, f"/runs/{child.pk}/")

    assert f'<a href="/runs/{parent.pk}/?step=2"' in page
    assert 'id="run-above"' not in text(client, f"/runs/{parent.pk}/")


def test_the_outline_holds_the_childs_rows_under_the_callers_number(client, ann):
    _, child = family(ann, status="running")

    part = text(client, f"/runs/{child.pk}/outline/")

    assert part.strip().startswith(f'<ol id="run-outline-{child.pk}"')
    assert '<span class="no">2.1</span>' in part
    assert '<span class="no">2.2</span>' in part
    assert f'href="/runs/{child.pk}/?step=2"' in part
    assert 'hx-trigger="every 2s"' in part


def test_the_outline_of_a_child_that_is_over_stays_as_it_is(client, ann):
    _, child = family(ann, status="succeeded")

    part = text(client, f"/runs/{child.pk}/outline/")

    assert "every 2s" not in part


def test_grandchildren_are_numbered_from_the_page_they_are_on(client, ann):
    parent, child = family(ann, status="waiting")
    step = make_step(child, status="started", tool="low", attempts=1)
    low = make_run(ann, parent_step=step, source="parent")
    make_call(low)

    part = text(client, f"/runs/{child.pk}/outline/?page={parent.pk}")
    assert f'hx-get="/runs/{low.pk}/outline/?page={parent.pk}"' in part
    deep = text(client, f"/runs/{low.pk}/outline/?page={parent.pk}")
    own = text(client, f"/runs/{low.pk}/outline/?page=nonsense")

    assert '<span class="no">2.3.1</span>' in deep
    assert 'data-depth="3"' in deep
    assert '<span class="no">3.1</span>' in own
    assert f'href="/runs/{parent.pk}/?step=2"' in text(client, f"/runs/{low.pk}/")


def test_a_long_child_shows_its_newest_rows(client, ann, monkeypatch):
    monkeypatch.setattr("runs.views.run.children.MAX_CHILD_ROWS", 1)
    _, child = family(ann)

    part = text(client, f"/runs/{child.pk}/outline/")

    assert "1 earlier step" in part
    assert '<span class="no">2.2</span>' in part


@pytest.mark.parametrize("part", ["brief", "outline"])
def test_hides_what_is_someone_elses_and_what_is_no_child(client, ann, part):
    _, child = family(make_user())

    assert client.get(f"/runs/{child.pk}/{part}/").status_code == 404
    assert client.get(f"/runs/{make_run(ann).pk}/{part}/").status_code == 404


ENDS = [
    pytest.param({"status": "failed"}, "The server said no.", id="failed"),
    pytest.param({"status": "succeeded"}, "1 round.", id="succeeded"),
    pytest.param({"status": "queued"}, "Waiting for a worker.", id="queued"),
    pytest.param({"status": "awaiting_approval"}, "Answer in run", id="approval"),
]


@pytest.mark.parametrize(("fields", "says"), ENDS)
def test_says_where_the_child_stands(client, ann, fields, says):
    _, child = family(ann, **fields)

    assert says in text(client, f"/runs/{child.pk}/brief/")


def test_an_answer_of_an_agent_is_shown_as_it_is_meant(client, ann):
    parent, _ = family(ann, status="succeeded")
    parent.steps.update(status="succeeded", observation="**Sunny.**", elapsed=0.0)

    pane = text(client, f"/runs/{parent.pk}/?step=2", **HTMX)

    assert "<strong>Sunny.</strong>" in pane
    assert "idempotent" not in pane


def test_the_work_of_other_agents_is_no_working_time_of_the_caller(client, ann):
    spec = make_spec(executor={"max_execution_time": 100})
    parent = make_run(ann, status="succeeded", spec=spec)
    make_step(
        parent,
        call=make_call(parent, elapsed=10.0),
        duration=80.0,
        elapsed=0.0,
        usage={"tokens": 7, "cost": 0.0},
    )

    page = text(client, f"/runs/{parent.pk}/")

    share = page.split('id="run-times"')[1]
    assert "Agents <b>" in share
    used = re.search(r"Working time</?[^%]*?(\d+)% used", page)
    assert used is not None
    assert int(used[1]) <= 15


@pytest.mark.parametrize("status", ["failed", "limit_reached"])
def test_a_child_that_is_over_is_not_offered_to_be_resumed(client, ann, status):
    parent, child = family(ann, status=status)
    over = {"status": status, **fit(status, timezone.now())}
    Run.objects.filter(pk=parent.pk).update(**over)

    page = text(client, f"/runs/{child.pk}/")

    assert "The calling run was notified and continued." in page
    assert f"/runs/{child.pk}/resume/" not in page
    assert f"/runs/{parent.pk}/resume/" in text(client, f"/runs/{parent.pk}/")
    assert client.get(f"/runs/{child.pk}/resume/").status_code == 302
