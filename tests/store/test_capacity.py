"""How many runs a worker takes: more while others wait for a model."""

import pytest

from runs.store.claims import MAX_ACTIVE_RUNS, ClaimedRun, WorkerState
from runs.store.claims import worker_state as this_worker
from tests.fakes.model_server import model_server
from tests.worker.run_parts import agent_on, executed


def make_state(threads):
    state = WorkerState()
    state.threads = threads
    return state


def test_a_run_that_waits_for_a_model_makes_room_for_another():
    state = make_state(2000)
    assert state.compute_capacity() == MAX_ACTIVE_RUNS

    with state.waiting_for_model():
        assert state.compute_capacity() == MAX_ACTIVE_RUNS + 1
    assert state.compute_capacity() == MAX_ACTIVE_RUNS


def test_a_worker_takes_no_more_runs_than_its_threads():
    state = make_state(2)
    with state.waiting_for_model():
        assert state.compute_capacity() == 2


def test_a_full_worker_says_that_there_is_room_again():
    state, said = make_state(2000), list[str]()
    state.on_more_capacity = lambda: said.append("room")
    with state.waiting_for_model():
        assert said == []

    for run_id in range(MAX_ACTIVE_RUNS):
        state.add_claim(ClaimedRun(run_id, fence=1))
    with state.waiting_for_model():
        assert said == ["room"]


@pytest.mark.django_db(transaction=True)
def test_a_model_call_counts_as_waiting(monkeypatch):
    waits = list[int]()
    monkeypatch.setattr(this_worker, "threads", 2000)

    def look(asked):
        waits.append(this_worker.model_waits)
        return "Done."

    with model_server(script=look) as server:
        executed(agent_on(server))

    assert waits == [1]
    assert this_worker.model_waits == 0
