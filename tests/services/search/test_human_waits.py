"""How long runs waited for people."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Decision
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.services.search.index_runs import index_runs
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.chat.turns import build_run_turn
from tests.make import make_decision, make_run, make_step

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def waiting(run, asked, answered=None):
    """Make a decision that was open from one moment to another, in seconds ago."""
    decision = make_decision(make_step(run))
    Decision.objects.filter(pk=decision.pk).update(
        asked_at=ago(asked),
        at=None if answered is None else ago(answered),
        answer="" if answered is None else "approved",
    )


def approved_run(**fields):
    """Make a run of 60 s that waited for 50 of them."""
    run = make_run(
        status="succeeded", started_at=ago(60), ended_at=NOW, rounds=1, **fields
    )
    waiting(run, 55, 5)
    return run


def test_decisions_that_are_open_at_once_count_once():
    run = make_run(status="running")
    waiting(run, 100, 60)
    waiting(run, 90, 50)
    waiting(run, 80, 70)
    waiting(run, 30, 20)

    assert load_human_waits([run.pk]) == {run.pk: pytest.approx(60)}


def test_an_open_decision_counts_until_now():
    run = make_run(status="awaiting_approval", started_at=ago(12))
    waiting(run, 10)
    waited = load_human_waits([run.pk])[run.pk]

    assert waited >= 10
    assert get_work_seconds(run, waited) == pytest.approx(2, abs=0.5)


def test_lists_show_the_time_without_waiting():
    run = approved_run()
    index_runs()
    run.refresh_from_db()
    (row,) = build_run_rows(annotate_current_tool(type(run).objects.all()))

    assert row.seconds == pytest.approx(10)
    assert row.waited == pytest.approx(50)
    assert run.search_row.seconds == pytest.approx(10)


def test_the_chat_names_the_waiting_beside_the_time():
    words = build_run_turn(approved_run()).words.replace("\N{NO-BREAK SPACE}", " ")

    assert words == "2 rounds, 1 tool call in 10 s, plus 50 s waiting"
