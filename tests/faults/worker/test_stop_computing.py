"""Stop while the sandbox of a Python tool computes, and just as it comes back."""

import time

import pytest

from runs.models import AgentStep, Run
from runs.services.health.invariants import check_invariants
from runs.services.runs.cancel import cancel_run
from tests.fakes.model_server import FakeServer, Recorded, model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.make import make_agent, make_provider, make_tool, make_user
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.faults

COUNT = "n = 0\nwhile n < upto:\n    n += 1\nn"
FOR_EVER = 10**15
RACES = 12
ROW = ("seq", "status", "fence", "next_index", "output")
STEP = ("status", "observation", "changed_seq", "ended_at")


def counting_on(server: FakeServer):
    """Make an agent that counts in the sandbox."""
    owner = make_user()
    upto = {"type": "object", "properties": {"upto": {"type": "integer"}}}
    tool = make_tool(
        owner,
        name="count",
        kind="python",
        effect="read",
        timeout=50,
        args_schema=upto,
        config={"code": COUNT},
    )
    provider = make_provider(owner, base_url=server.base_url)
    return make_agent(owner, provider=provider, tools=(tool,))


def counting(asked: Recorded):
    """Count as far as the question says, then be done."""
    last = asked.body["messages"][-1]
    if last["role"] == "tool":
        return "Done."
    return call("count", upto=int(last["content"]))


def rows_of(runs: list[Run]):
    """Return all that a late commit would change."""
    found = Run.objects.filter(pk__in=[run.pk for run in runs]).order_by("pk")
    steps = AgentStep.objects.filter(run__in=found).order_by("pk")
    return list(found.values(*ROW)), list(steps.values(*STEP))


@pytest.mark.slow
def test_stop_ends_a_computing_tool(workers, record_property):
    with model_server(script=counting) as server:
        workers.start()
        run = started(counting_on(server), str(FOR_EVER))
        workers.wait(lambda: run.steps.filter(status="started").exists())
        began = time.monotonic()
        cancel_run(run)
        workers.wait_for(run, "canceled")
        record_property("seconds", time.monotonic() - began)
    assert run.steps.get().status == "canceled"


def test_nothing_is_committed_after_a_stop_that_races_with_the_result(workers):
    with model_server(script=counting) as server, model_server(script=["On."]) as other:
        workers.start(threads=RACES)
        agent = counting_on(server)
        runs = [started(agent, str(4_000_000 * n)) for n in range(RACES)]
        stopped_all_along = started(agent, str(FOR_EVER))
        workers.wait(lambda: Run.objects.filter(status="succeeded").exists())
        for run in [*runs, stopped_all_along]:
            cancel_run(run)
        for run in runs:
            workers.wait_for(run, "canceled", "succeeded")
        workers.wait_for(stopped_all_along, "canceled")
        before = rows_of(runs)
        workers.wait_for(started(agent_on(other)))  # the worker goes on
        time.sleep(2)  # time for what would come late

    assert rows_of(runs) == before
    assert list(check_invariants()) == []
    assert {step["status"] for step in before[1]} <= {"canceled", "succeeded"}
