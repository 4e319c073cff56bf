"""Runs that wait for other runs, and workers that are killed meanwhile."""

import pytest

from runs.models import Run
from runs.services.health.invariants import check_invariants
from tests.fakes.model_server import model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.worker.family import caller_of, children_of
from tests.worker.run_parts import agent_on, call, calls, started

pytestmark = pytest.mark.faults


def test_each_call_has_one_child_and_one_answer_after_kill_9(workers):
    both = calls(call("scout", id="a", input="x"), call("scout", id="b", input="y"))
    looks = [call("look", what="it", seconds=3.0), call("look", what="it", seconds=3.0)]
    with (
        model_server(script=[*looks, "Seen.", "Seen."]) as below,
        model_server(script=[both, "All seen."]) as above,
    ):
        first = workers.start()
        scout = agent_on(below, "look", slug="scout")
        run = started(caller_of(above, scout))
        workers.wait_for_line("look it", times=2)
        first.kill()
        workers.start(threads=1)  # a parent that waits holds no thread of its worker
        workers.wait_for(run)

    assert run.output == "All seen."
    assert [step.observation for step in run.steps.all()] == ["Seen.", "Seen."]
    assert [child.status for child in children_of(run)] == ["succeeded"] * 2
    assert Run.objects.count() == 3
    assert list(check_invariants()) == []
