"""Children that end in the same moment, and a caller that is stopped meanwhile."""

import pytest

from runs.models import Run
from runs.services.runs.cancel import cancel_run
from runs.services.runs.end import end_canceled
from runs.store.claims import ClaimedRun, WorkerState
from runs.store.transitions import transition
from runs.worker.heartbeat import send_heartbeat
from tests.make import make_call, make_run, make_step, make_worker
from tests.support.threads import at_once
from tests.worker.family import sound

pytestmark = pytest.mark.django_db(transaction=True)

CHILDREN = 6


def family(**fields: object) -> tuple[Run, list[Run]]:
    """Make a run with children, each of which a worker has; it waits for them."""
    parent = make_run(**{"status": "waiting", **fields})
    call = make_call(parent)
    steps = [
        make_step(parent, call=call, status="started", effect="idempotent", attempts=1)
        for _ in range(CHILDREN)
    ]
    children = [
        make_run(parent.owner, parent_step=step, source="parent", status="running")
        for step in steps
    ]
    for child in children:
        make_call(child)
    return parent, children


def succeed(child: Run) -> bool:
    return transition(child, to="succeeded", fence=1, output="Sunny.")


def test_the_last_of_them_wakes_the_caller_and_all_are_counted():
    parent, children = family()

    at_once(*(lambda child=child: succeed(child) for child in children))

    parent.refresh_from_db()
    assert parent.status == "queued"
    assert parent.model_calls == 1 + CHILDREN
    assert parent.input_tokens == 100 * (1 + CHILDREN)
    sound()


def test_a_stop_of_the_caller_waits_for_nobody_in_a_circle():
    parent, children = family()
    ending = [lambda child=child: succeed(child) for child in children[:3]]

    at_once(lambda: cancel_run(parent), *ending)
    for child in children[3:]:  # their workers hear of it and end them
        assert Run.objects.get(pk=child.pk).cancel_requested_at is not None
        end_canceled(child, fence=1)

    parent.refresh_from_db()
    assert parent.status == "canceled"
    assert parent.model_calls == 1 + CHILDREN
    sound()


def test_signs_of_life_do_not_stand_in_the_way_of_ends():
    process = WorkerState()
    process.worker = make_worker()
    parent, children = family(status="running")
    everyone = Run.objects.filter(pk__in=[parent.pk, *(one.pk for one in children)])
    everyone.update(worker=process.worker)
    for one in everyone:
        process.add_claim(ClaimedRun(one.pk, one.fence))
    ending = [lambda child=child: succeed(child) for child in children]

    at_once(lambda: [send_heartbeat(process) for _ in range(20)], *ending)

    assert {Run.objects.get(pk=child.pk).status for child in children} == {"succeeded"}
    for child in children:
        process.remove_claim(process.claims[child.pk])
    assert send_heartbeat(process)
    sound()
