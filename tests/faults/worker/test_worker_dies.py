"""Workers killed in the middle: every run goes on, and nothing happens twice."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs.models import Run
from runs.services.approvals.answer import settle_outcome
from runs.services.runs.cancel import cancel_run
from runs.store.recovery import MAX_RECOVERIES
from tests.fakes.model_server import Recorded, model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.worker.run_parts import agent_on, call, calls, started

pytestmark = pytest.mark.faults

ARGUMENT = {"pay": "whom", "look": "what"}


def test_a_run_goes_on_after_kill_9_with_each_step_once(workers):
    script = [
        call("look", what="one"),
        call("look", what="two", until="killed"),
        call("look", what="three"),
        "All seen.",
    ]
    with model_server(script=script) as server:
        first = workers.start()
        run = started(agent_on(server, "look"))
        workers.wait(lambda: run.steps.count() >= 2)  # a quick read is stored later
        first.kill()
        (workers.folder / "killed").touch()
        workers.start()
        workers.wait_for(run)

    assert run.output == "All seen."
    assert [s.index for s in run.steps.all()] == [0, 1, 2]
    assert workers.ledger.count("look one") == 1
    assert workers.ledger.count("look three") == 1


def test_a_side_effect_under_way_is_not_repeated_without_approval(workers):
    with model_server(
        script=[call("pay", whom="ann", until="killed"), "Paid."]
    ) as server:
        first = workers.start()
        run = started(agent_on(server, "pay"))
        workers.wait_for_line("pay ann")
        first.kill()
        workers.start()
        workers.wait_for(run, "awaiting_decision")
        settle_outcome(
            run.steps.get().decisions.get(),
            by=run.owner,
            answer="happened",
            result="ok",
        )
        workers.wait_for(run)

    assert workers.ledger == ["pay ann"]


@pytest.mark.slow
def test_a_run_that_kills_its_worker_ends_and_its_neighbours_go_on(workers):
    def twice(asked: Recorded):
        looks = sum(message["role"] == "tool" for message in asked.body["messages"])
        return call("look", what=str(looks), seconds=2.0) if looks < 2 else "Fine."

    with (
        model_server(script=[call("die", reason="x")]) as deadly,
        model_server(script=twice) as kind,
    ):
        bad = started(agent_on(deadly, "die"))
        neighbours = [started(agent_on(kind, "look")) for _ in range(3)]
        with workers.kept_alive():
            workers.wait_for(bad, "failed", seconds=300)
            for good in neighbours:
                workers.wait_for(good, seconds=300)

    assert bad.error_code == "crashed_repeatedly"
    assert workers.ledger.count("die x") == MAX_RECOVERIES
    assert [good.output for good in neighbours] == ["Fine."] * 3


@pytest.mark.slow
def test_a_run_whose_workers_were_killed_by_others_gets_a_last_try(workers):
    script = [call("look", what="it", until="killed-thrice"), "Seen."]
    with model_server(script=script) as server:
        run = started(agent_on(server, "look"))
        for kill in range(1, 4):
            worker = workers.start(AGENTSITE_LEASE_SECONDS="5")
            workers.wait(
                lambda n=kill: workers.ledger.count("look it") == n, seconds=300
            )
            workers.wait(run.steps.exists)  # a quick read is stored later
            worker.kill()
        (workers.folder / "killed-thrice").touch()
        workers.start(AGENTSITE_LEASE_SECONDS="5")
        workers.wait_for(run, seconds=300)

    assert (run.output, run.recoveries) == ("Seen.", 0)
    assert workers.ledger.count("look it") == 4


MOST_MEMORY_MB = 400
"""What a worker with two runs may ever have taken; it prints more than twice that."""


def test_a_tool_that_prints_a_gigabyte_harms_neither_worker_nor_neighbours(workers):
    with (
        model_server(script=[call("shout", megabytes=1024), "Done."]) as loud,
        model_server(script=[call("look", what="a"), "Fine."]) as kind,
        received() as ear,
    ):
        worker = workers.start(output=ear.pipe)
        bad = started(agent_on(loud, "shout"))
        workers.wait(lambda: ear.megabytes >= 512)
        good = started(agent_on(kind, "look"))
        workers.wait_for(good)  # in the middle of it: the rest is not listened to
        ear.goes_on.set()
        workers.wait_for(bad)
        workers.wait(lambda: ear.megabytes >= 1024)

        assert most_memory_mb(worker.pid) < MOST_MEMORY_MB
        assert worker.poll() is None

    assert bad.steps.get().observation == "hoarse"
    assert workers.ledger == ["look a"]


class Ear:
    """Reads what a process prints, and keeps none of it."""

    def __init__(self, end: int, pipe: int) -> None:
        self.end, self.pipe, self.read = end, pipe, 0
        self.goes_on = threading.Event()

    @property
    def megabytes(self) -> int:
        """How much it was so far."""
        return self.read >> 20

    def listen(self) -> None:
        """Read to the end; wait half-way until told to go on."""
        while piece := os.read(self.end, 1 << 20):
            self.read += len(piece)
            if self.megabytes >= 512:
                self.goes_on.wait()


@contextmanager
def received() -> Iterator[Ear]:
    """Give an ear; it hears until the processes that have its pipe are gone."""
    end, pipe = os.pipe()
    ear = Ear(end, pipe)
    threading.Thread(target=ear.listen, daemon=True).start()
    try:
        yield ear
    finally:
        ear.goes_on.set()
        os.close(pipe)


def most_memory_mb(pid: int) -> int:
    """Return the most memory a process has ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) >> 10


def test_stop_ends_a_hanging_model_call(workers, record_property):
    with model_server(script=[{"content": "Late.", "seconds": 60}]) as server:
        workers.start()
        run = started(agent_on(server))
        workers.wait(lambda: server.requests)
        began = time.monotonic()
        cancel_run(run)
        workers.wait_for(run, "canceled")
        record_property("seconds", time.monotonic() - began)
    assert run.attempts.get().code == "canceled"  # the page shows the call cut off


def test_stop_ends_a_hanging_tool(workers, record_property):
    with model_server(script=[call("look", what="it", seconds=60.0)]) as server:
        workers.start()
        run = started(agent_on(server, "look"))
        workers.wait_for_line("look it")
        began = time.monotonic()
        cancel_run(run)
        workers.wait_for(run, "canceled")
        record_property("seconds", time.monotonic() - began)
    assert run.steps.get().status == "canceled"


@pytest.mark.slow
def test_sigterm_puts_runs_back_and_another_worker_goes_on(workers):
    script = [call("look", what="one", seconds=8.0), call("look", what="two"), "Seen."]
    with model_server(script=script) as server:
        first = workers.start()
        run = started(agent_on(server, "look"))
        workers.wait_for_line("look one")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        assert Run.objects.get(pk=run.pk).status == "queued"
        workers.start()
        workers.wait_for(run)

    assert workers.ledger == ["look one", "look two"]


@pytest.mark.parametrize("names", [["pay"], ["pay", "pay", "look"]])
@pytest.mark.slow
def test_sigterm_during_a_model_call_leaves_no_unknown_outcome(workers, names):
    reply = calls(
        *(call(name, **{ARGUMENT[name]: str(n)}) for n, name in enumerate(names))
    )
    script = [{**reply, "seconds": 4.0}, "Done."]
    with model_server(script=script) as server:
        first = workers.start()
        run = started(agent_on(server, *dict.fromkeys(names)))
        workers.wait(lambda: server.requests)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        assert set(run.steps.values_list("status", flat=True)) == {"planned"}
        workers.start()
        workers.wait_for(run)

    assert sorted(workers.ledger) == sorted(
        f"{name} {n}" for n, name in enumerate(names)
    )


@pytest.mark.slow
def test_a_deadlocked_worker_exits_and_another_finishes_its_run(workers):
    with model_server(script=[call("deadlock", once="x"), "Done."]) as server:
        first = workers.start(AGENTSITE_HANG_SECONDS="15")
        run = started(agent_on(server, "deadlock"))
        workers.wait(lambda: first.poll() is not None, seconds=150)
        workers.start()
        workers.wait_for(run)

    assert first.returncode == 1
    assert "the heartbeat" in workers.said
