"""A commit: the fence, and the rows behind it, or nothing."""

import pytest

from runs.models import AgentStep, ModelCall
from runs.store.claims import LeaseLost
from runs.store.commits import INCREMENT_SEQ
from runs.store.fenced_commit import Commit, write_commit
from tests.make import make_run, make_step

pytestmark = pytest.mark.django_db


def call_of(run):
    """Return a row that is not stored yet."""
    return ModelCall(
        run=run,
        number=7,
        at_index=7,
        round=1,
        reply={"text": "é\u2028 ' \\ %s", "native": {"n": 10**30, "x": [None, 1e-7]}},
        digest="d" * 64,
        cost="0.000123",
        started_at=run.created_at,
        elapsed=0.25,
    )


def steps_of(run, call, *, count):
    """Return as many rows, not stored yet."""
    return [
        AgentStep(run=run, model_call=call, index=7 + n, round=1, tool=f"t{n}")
        for n in range(count)
    ]


def test_rows_are_stored_as_they_are_and_stamped():
    run = make_run(status="running")
    call = call_of(run)
    steps = steps_of(run, call, count=12)

    seq = write_commit(
        Commit(INCREMENT_SEQ, [run.pk, run.fence], call=call, steps=steps)
    )

    stored = ModelCall.objects.get()
    assert stored.pk == call.pk
    assert stored.reply == call.reply
    assert (str(stored.cost), stored.elapsed) == ("0.000123", 0.25)
    assert stored.started_at == run.created_at
    found = list(AgentStep.objects.order_by("index"))
    assert [(s.pk, s.tool, s.model_call_id) for s in found] == [
        (s.pk, s.tool, call.pk) for s in steps
    ]
    assert {(s.created_seq, s.changed_seq) for s in found} == {(seq, seq)}
    run.refresh_from_db()
    assert run.seq == seq


def test_an_older_fence_writes_nothing():
    run = make_run(status="running")
    call = call_of(run)

    with pytest.raises(LeaseLost):
        write_commit(Commit(INCREMENT_SEQ, [run.pk, run.fence + 1], call=call))

    assert not ModelCall.objects.exists()
    seq = run.seq
    run.refresh_from_db()
    assert run.seq == seq


def test_only_the_named_columns_of_a_changed_row_are_written():
    run = make_run(status="running")
    step = make_step(run, status="started")
    step.observation, step.value, step.log = "sunny", {"c": 20}, "not this"

    seq = write_commit(
        Commit(
            INCREMENT_SEQ,
            [run.pk, run.fence],
            changed=[step],
            columns=("observation", "value"),
        )
    )

    step = AgentStep.objects.get()
    assert (step.observation, step.value, step.changed_seq) == (
        "sunny",
        {"c": 20},
        seq,
    )
    assert step.log != "not this"
