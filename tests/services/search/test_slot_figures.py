"""Figures of a period from the sums by slot and by day."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from runs.models import Run
from runs.models.run_slots import EVERYONE
from runs.services.search.index_runs import index_runs
from runs.services.search.slot_figures import (
    SlotRange,
    sum_agents_and_models,
    sum_runs,
)
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
QUARTER = timedelta(minutes=15)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        pytest.param(0, None, id="from midnight"),
        pytest.param(5, None, id="from a quarter"),
        pytest.param(0, 96, id="one day"),
        pytest.param(-33, 200, id="three days and parts of two"),
        pytest.param(-96, 96 * 3, id="whole days"),
        pytest.param(10, 90, id="a part of a day"),
        pytest.param(90, 100, id="over midnight"),
        pytest.param(96, 96, id="nothing"),
    ],
)
def test_days_and_slots_add_up_to_the_runs_of_a_period(begin, end):
    dice, owner = random.Random(5), make_user()
    agents = [make_agent(owner), make_agent(owner)]
    for number in range(-120, 320, 3):
        run = make_run(
            agent=dice.choice(agents),
            status=dice.choice(["succeeded", "failed", "canceled"]),
            is_test=number % 5 == 0,
            input_tokens=number + 200,
        )
        start = MIDNIGHT + number * QUARTER + timedelta(minutes=7)
        Run.objects.filter(pk=run.pk).update(created_at=start)
    index_runs()
    first = MIDNIGHT + begin * QUARTER
    last = None if end is None else MIDNIGHT + end * QUARTER
    asked = SlotRange(EVERYONE, first, last, counts_tests=False)

    found = sum_agents_and_models(asked)

    runs = Run.objects.filter(created_at__gte=first)
    runs = runs if last is None else runs.filter(created_at__lt=last)
    real = Counter(runs.filter(is_test=False).values_list("agent", flat=True))
    assert {one.agent_number: one.runs for one in found if one.runs} == dict(real)
    tokens = sum(runs.values_list("input_tokens", flat=True))
    assert sum(one.tokens for one in found) == tokens
    sums = sum_runs(asked)
    assert (sums.ended + sums.canceled, sums.tokens) == (real.total(), tokens)
