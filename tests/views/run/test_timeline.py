"""The time scale of a run, as the database works it out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import AgentStep, ModelAttempt, ModelCall
from runs.ui.time_scale import SHOWN_WAIT, Timeline
from runs.views.run.state import load_run_state
from runs.views.run.timeline import load_timeline
from tests.make import make_call, make_run, make_step, make_user

pytestmark = pytest.mark.django_db

BEGAN = timezone.now().replace(microsecond=0) - timedelta(hours=1)


def at(seconds):
    return BEGAN + timedelta(seconds=seconds)


def run_of(*work):
    """Make a run of (kind, start, seconds)."""
    run = make_run(make_user(), status="running", started_at=BEGAN)
    for kind, start, seconds in work:
        if kind == "model":
            make_call(run, started_at=at(start), elapsed=seconds)
        else:
            make_step(run, started_at=at(start), duration=seconds)
    return run


def fed_by_hand(run):
    """Return the timeline as the live stream makes it, row by row."""
    timeline = Timeline(run.started_at)
    calls = ModelCall.objects.filter(run=run)
    steps = AgentStep.objects.filter(run=run)
    work = [(call.started_at, call.elapsed, "model") for call in calls]
    work += [(step.started_at, step.duration, "tool") for step in steps]
    for start, seconds, kind in sorted(work):
        timeline.add(start, seconds, kind)
    return timeline


def near(moment, other):
    return abs((moment - other).total_seconds()) < 0.01


PAUSED = (("model", 0, 2), ("tool", 2, 3), ("model", 4000, 1), ("tool", 4001, 1))
SIDE_BY_SIDE = (("model", 1, 2), ("tool", 3, 4), ("tool", 3.5, 1), ("tool", 4, 5))


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(PAUSED, id="a person was waited for"),
        pytest.param(SIDE_BY_SIDE, id="tools side by side"),
        pytest.param((), id="nothing yet"),
    ],
)
def test_agrees_with_the_timeline_of_the_live_page(work):
    run = run_of(*work)
    whole, grown = load_timeline(run), fed_by_hand(run)

    assert whole.end() == pytest.approx(grown.end(), abs=0.01)
    assert [end for end, _ in whole.cuts] == [end for end, _ in grown.cuts]
    assert whole.waited == pytest.approx(grown.waited, abs=0.01)
    assert whole.busy == pytest.approx(grown.busy, abs=0.01)


def test_a_long_wait_is_cut_and_still_counts_as_waiting():
    timeline = load_timeline(run_of(*PAUSED))

    assert timeline.end() == pytest.approx(5 + SHOWN_WAIT + 2, abs=0.01)
    assert timeline.waited == pytest.approx(3995, abs=0.01)


@pytest.mark.parametrize("microsecond", [0, 1, 499, 500, 501, 123456, 999_500, 999_999])
def test_a_step_after_a_long_wait_stands_where_the_wait_ends(microsecond):
    run = run_of(("model", 0, 2))
    began = at(4000).replace(microsecond=microsecond)
    make_step(run, started_at=began, duration=1)
    timeline = load_timeline(run)

    assert timeline.cuts[0][0] == began
    assert timeline.at(began) == pytest.approx(2 + SHOWN_WAIT, abs=0.01)


def test_each_instant_counts_once():
    timeline = load_timeline(run_of(*SIDE_BY_SIDE))

    assert timeline.busy == pytest.approx({"model": 2, "tool": 6}, abs=0.01)
    assert timeline.waited == pytest.approx(1, abs=0.01)


def test_a_call_lasts_as_long_as_the_attempt_that_got_the_reply():
    run = run_of(("model", 14, 16))
    ModelAttempt.objects.create(
        run=run,
        number=0,
        attempt=1,
        code="timeout",
        message="No.",
        started_at=at(0),
        elapsed=10.0,
        retry_in=4.0,
        created_seq=1,
    )
    timeline = load_timeline(run)

    assert timeline.busy == pytest.approx({"model": 12}, abs=0.01)
    assert timeline.end() == pytest.approx(16, abs=0.01)


def test_rows_older_than_their_run_set_the_beginning():
    run = run_of(("model", -20, 2), ("model", 0, 1))
    timeline = load_timeline(run)

    assert timeline.began is not None
    assert near(timeline.began, at(-20))
    assert timeline.at(at(0)) == pytest.approx(20, abs=0.01)


def test_the_header_names_the_waiting_in_the_duration():
    run = run_of(*PAUSED)
    run.status, run.ended_at = "succeeded", at(4002)
    state = load_run_state(run, load_timeline(run))

    assert state.duration_text == "1 h 7 min total, 1 h 7 min of it waiting"
    assert state.busy_seconds == pytest.approx(7)
    assert state.cut_note == "Waits longer than 30 s are drawn as 2.0 s."
