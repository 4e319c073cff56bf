"""Rounds kept between pages: quicker, and never believed without the digest."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.services.kept_rounds import (
    MOST_BYTES,
    MOST_RUNS,
    keep_rounds,
    take_rounds,
)
from runs.services.rebuild_prompt import rebuild_prompt
from runs.services.retell import retell
from tests.bench.big_run import make_big_run
from tests.make import make_call, make_run, make_user

pytestmark = pytest.mark.django_db

ROUNDS = 60


def told(steps=2 * ROUNDS):
    """Return what is told of the last call of a run."""
    run = make_big_run(make_user(), steps=steps)
    return retell(run.calls.get(number=steps // 2)).rounds


def test_steps_in_any_order_are_told_as_if_nothing_were_kept():
    run = make_big_run(make_user(), steps=2 * ROUNDS)

    for number in (55, ROUNDS - 1, 52, ROUNDS, 3, 57):
        call = run.calls.get(number=number)
        rebuilt = rebuild_prompt(call)
        assert rebuilt.agrees
        assert rebuilt.request == retell(call).request
        assert rebuilt.known == len(retell(call).before.messages)


def test_a_neighbour_of_a_late_step_reads_no_step_again():
    run = make_big_run(make_user(), steps=2 * ROUNDS)
    rebuild_prompt(run.calls.get(number=ROUNDS))

    call = run.calls.select_related("run__spec").get(number=ROUNDS - 1)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert rebuild_prompt(call).agrees

    assert not [one for one in asked if "observation" in one["sql"]]


def test_what_is_kept_is_not_believed_where_the_digest_differs():
    ann = make_user()
    run, other = (make_big_run(ann, steps=2 * ROUNDS) for _ in range(2))
    other.steps.update(observation="Something else.")
    call = run.calls.get(number=ROUNDS)
    keep_rounds(call, retell(other.calls.get(number=ROUNDS)).rounds, size=1)

    assert rebuild_prompt(call).agrees
    assert rebuild_prompt(call).request == retell(call).request


def test_only_a_few_runs_are_kept_and_each_is_taken_once():
    rounds, ann = told(), make_user("ben")
    calls = [make_call(make_run(ann)) for _ in range(MOST_RUNS + 1)]
    for call in calls:
        keep_rounds(call, rounds, size=1)

    assert [take_rounds(call) is None for call in calls] == [True] + [False] * MOST_RUNS
    assert take_rounds(calls[-1]) is None


def test_neither_short_nor_huge_runs_are_kept():
    call = make_call(make_run(make_user("ben")))
    take_rounds(call)  # of another test's run of that number
    keep_rounds(call, told(steps=10), size=1)
    keep_rounds(call, told(), size=MOST_BYTES + 1)

    assert take_rounds(call) is None
