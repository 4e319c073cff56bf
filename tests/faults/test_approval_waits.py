"""A question outlives every process, and one nobody answers ends by itself."""

import pytest
import redis
from django.conf import settings

from runs.models import Decision
from runs.services.approvals.answer import approve_step
from tests.fakes.model_server import model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.worker.run_parts import agent_on, ask_before, call, started

pytestmark = pytest.mark.faults


def asking(server, **overrides):
    """Start a run that will ask before it pays."""
    agent = agent_on(server, "pay")
    ask_before(agent, "pay")
    agent.uses.update(overrides=overrides)
    return started(agent)


@pytest.mark.slow
def test_a_question_waits_through_a_restart_of_everything(workers):
    one_second = 1 / 3600
    with (
        model_server(script=[call("pay", whom="ann"), "Paid."]) as patient,
        model_server(script=[call("pay", whom="bob"), "Fine."]) as hasty,
    ):
        waits = asking(patient, approval_hours=1)
        ends = asking(hasty, approval_hours=one_second)
        first = workers.start()
        workers.wait_for(waits, "awaiting_approval")
        workers.wait_for(ends)  # by the worker's own sweeper
        first.kill()
        first.wait()
        with redis.Redis.from_url(settings.REDIS_URL) as broker:
            broker.flushall()
        workers.start()
        hasty.script.append("Here.")
        last = started(agent_on(hasty))
        workers.wait_for(last)  # the new worker works
        waits.refresh_from_db()
        assert (waits.status, waits.lease_until) == ("awaiting_approval", None)

        approve_step(waits.steps.get().decisions.get(), by=waits.owner)
        workers.wait_for(waits)

    assert workers.ledger == ["pay ann"]
    assert len(patient.requests) == 2
    assert Decision.objects.get(step__run=ends).answer == "expired"
