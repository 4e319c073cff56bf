"""Filing runs that are over."""

import pytest
from django.utils import timezone

from runs.models import Run, RunSearchRow, RunTool
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import MAX_TEXT_LENGTH, index_runs
from tests.make import make_run, make_step

pytestmark = pytest.mark.django_db


def test_files_what_is_over_and_nothing_else():
    over, running = make_run(status="succeeded"), make_run(status="running")

    assert index_runs() == 1
    assert list(RunSearchRow.objects.values_list("run_id", flat=True)) == [over.pk]
    assert not Run.objects.get(pk=running.pk).indexed


def test_does_no_harm_twice():
    make_run(status="succeeded")

    assert [index_runs(), index_runs()] == [1, 0]
    assert RunSearchRow.objects.count() == 1


def test_takes_only_so_many_at_once():
    for _ in range(3):
        make_run(status="succeeded")

    assert [index_runs(2), index_runs(2), index_runs(2)] == [2, 1, 0]


def test_the_card_says_what_can_be_searched_and_sorted():
    run = make_run(
        status="succeeded",
        inputs={"input": "Wie IST das Wetter?", "city": "北京"},
        output={"plan": "Ein Spaziergang"},
        input_tokens=10,
        output_tokens=5,
        rounds=2,
        cost="0.25",
    )
    index_runs()

    card = RunSearchRow.objects.get(run=run)
    for word in ("wie ist das wetter?", "北京", "ein spaziergang"):
        assert word in card.text
    assert (card.tokens, card.rounds, float(card.cost)) == (15, 2, 0.25)


def test_of_a_long_text_the_beginning_is_kept():
    run = make_run(status="succeeded", inputs={"input": "x" * 100_000}, output=None)
    index_runs()

    assert len(RunSearchRow.objects.get(run=run).text) == MAX_TEXT_LENGTH


def test_the_tools_are_those_that_were_called():
    run = make_run(status="running")
    for tool in ("search", "search", "_Exception"):
        make_step(run, tool=tool, elapsed=0.1)
    Run.objects.filter(pk=run.pk).update(
        status="succeeded", lease_until=None, ended_at=timezone.now()
    )
    index_runs()

    assert list(RunTool.objects.values_list("tool", flat=True)) == ["search"]


def test_the_failed_tools_of_a_resumed_run_are_known():
    run = make_run(status="limit_reached", stop_reason="iterations")
    for tool in ("search", "search", "look_up"):
        make_step(run, tool=tool)
    index_runs()
    make_step(run, tool="look_up", status="failed")
    make_step(run, tool="look_up")
    Run.objects.update(indexed=False)
    index_runs()

    called = RunTool.objects.order_by("tool").values_list("tool", "has_failed")
    assert list(called) == [("look_up", True), ("search", False)]


def test_a_resumed_run_is_filed_again():
    run = make_run(status="limit_reached", stop_reason="iterations", output="First")
    index_runs()
    resume_run(run, by=run.owner, limits={"max_iterations": 30})
    Run.objects.filter(pk=run.pk).update(
        status="succeeded", output="Second", ended_at=timezone.now()
    )

    assert index_runs() == 1
    assert "second" in RunSearchRow.objects.get(run=run).text
