"""What programs get of a run while it is written to."""

import pytest

from runs.live.api_renderer import build_event_batch
from runs.live.changes import Changes
from tests.make import make_run, make_step

pytestmark = pytest.mark.django_db


def count_steps(batch):
    return sum(one.appended.count(b"event: step\n") for one in batch.fragments)


def test_a_step_that_changed_after_the_run_was_read_comes_once():
    run = make_run(status="running", seq=7)
    step = make_step(run, created_seq=3, changed_seq=7)

    early = build_event_batch(Changes(run, since=0, seq=5, steps=[step]))
    late = build_event_batch(Changes(run, since=5, seq=7, steps=[step]))

    assert count_steps(early) == 0
    assert count_steps(late) == 1
