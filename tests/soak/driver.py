"""One soak: runs are started while things break, then everything is judged."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import suppress

from django.db import connection

from runs.models import Run
from tests.soak.chaos import Chaos
from tests.soak.judge import violations
from tests.soak.machines import LEASE_SECONDS, Machines
from tests.soak.model import Planner
from tests.soak.person import Person
from tests.soak.recovery import Recovery
from tests.soak.site import prepare
from tests.support.servers import is_healthy
from tests.support.timing import wait_until

RUNS_A_SECOND = 6.0
RUNS_A_FAULT = 10
PATIENCE_SECONDS = 180.0
"""For the runs to end after the last fault."""


def soak(found: Machines, planner: Planner, *, runs: int) -> int:
    """Start the runs, break what the plan says, wait, judge and report."""
    token, user = prepare(found.model_url)
    wait_until(lambda: is_healthy(found.web_port), seconds=180)
    recovery, person = Recovery(), Person(user, seed=planner.seed)
    faults = max(runs // RUNS_A_FAULT, 1)
    chaos = Chaos(found, seed=planner.seed, faults=faults, on_loss=recovery.note)
    for thread in (recovery, person, chaos):
        thread.start()
    slowest = start_all(found, planner, token, chaos, runs=runs)
    while chaos.is_alive():
        chaos.join(1)
        say(f"All {runs} runs started, {chaos.made} of {faults} faults")
    connection.close()  # the one from before a crash of the database
    unfinished = Run.objects.filter(ended_at=None)
    with suppress(AssertionError):  # what is not over is judged too
        wait_until(lambda: not unfinished.exists(), seconds=PATIENCE_SECONDS)
    for thread in (recovery, person):
        thread.is_done.set()
        thread.join()
    wrong = list(violations(found.ledger.read_text().splitlines()))
    if Run.objects.count() != runs:
        wrong.append(f"{runs} runs were accepted, {Run.objects.count()} are there")
    if chaos.error is not None:
        wrong.append(f"the chaos itself failed: {chaos.error!r}")
    report(chaos, slowest=slowest, wrong=wrong)
    if wrong:
        sys.stdout.write(found.said)
    connection.close()
    sys.stdout.write(
        f"runs={runs} faults={chaos.made} violations={len(wrong)} "
        f"recovery_p99={recovery.p99():.1f}\n"
    )
    return int(bool(wrong))


def start_all(
    found: Machines, planner: Planner, token: str, chaos: Chaos, *, runs: int
) -> float:
    """Start every run by the API; return the seconds of the slowest answer."""
    slowest = 0.0
    for number in range(runs):
        took = submit(found.web_port, token, planner.question(number), str(number))
        slowest = max(slowest, took)
        say(f"{number + 1} of {runs} runs started, {chaos.made} faults")
        time.sleep(1 / RUNS_A_SECOND)
    return slowest


def submit(port: int, token: str, question: str, key: str) -> float:
    """Start a run, asking again under the same key until it is accepted.

    Return the seconds of the request that was.
    """
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/runs",
        data=json.dumps({"agent": "soak", "inputs": {"input": question}}).encode(),
        headers={"Authorization": f"Bearer {token}", "Idempotency-Key": f"soak-{key}"},
    )
    until = time.monotonic() + 120
    while True:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()
            return time.monotonic() - began
        except (OSError, urllib.error.HTTPError) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or time.monotonic() > until:
                raise
            time.sleep(0.2)


def report(chaos: Chaos, *, slowest: float, wrong: list[str]) -> None:
    """Say how the runs ended, what was broken and what was violated."""
    say("")
    ends = Counter(Run.objects.values_list("status", flat=True))
    lines = [
        f"Ends: {counted(ends)}",
        f"Faults: {counted(Counter(chaos.plan))}",
        f"Lease {LEASE_SECONDS:g} s; slowest accepted request {slowest:.2f} s",
        *(f"VIOLATION {sentence}" for sentence in wrong),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def counted(counts: "Counter[str]") -> str:
    """Return `12 this, 3 that`."""
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def say(text: str) -> None:
    """Show progress on a terminal, on one line."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K{text}")
        sys.stdout.flush()
