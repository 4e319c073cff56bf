"""kill -9 between each pair of commits of a tool call, for each effect.

A server outside keeps a ledger of what reached it. Nothing with a side effect reaches
it twice without a person's yes; what reads or is idempotent is repeated with its key.
The reply that asks for a quick call of a function that reads is stored with its
outcome: until then a crash loses it, and the model is asked again.
"""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from runs.services.approvals.answer import approve_step, settle_outcome
from runs.services.health.invariants import check_invariants
from runs.store.claims import KEPT_SLOTS
from tests.fakes.model_server import Recorded, model_server
from tests.faults.worker.kill_points import PLAN
from tests.make import make_agent, make_provider, make_tool, make_user
from tests.tools.http_server import Answer, Got, serve
from tests.worker.run_parts import (
    ask_before,
    call,
    function_tool,
    go_on,
    started,
)

pytestmark = pytest.mark.faults

EFFECTS = ("read", "idempotent", "side_effect")
PLACES = (
    *("before-reply", "after-reply", "before-call"),
    *("call-arrived", "before-outcome", "after-outcome"),
)
CASES = [
    *(f"{effect} {place}" for effect in EFFECTS for place in PLACES),
    *(f"quick {place}" for place in PLACES[2:]),
    *(f"approved {place}" for place in ("before-start", *PLACES[2:])),
    "asking after-reply",
]
"""Each the question of one run: the effect, and where its worker dies."""

ARGUMENTS = {
    "type": "object",
    "properties": {"what": {"type": "string"}},
    "required": ["what"],
}


@dataclass
class Outside:
    """A server that does things when it is asked to, and writes each down."""

    ledger: list[tuple[str, str]] = field(default_factory=list)
    """What was asked, and with which key."""
    end: threading.Event = field(default_factory=threading.Event)

    def answer(self, got: Got) -> Answer:
        """Do it; a first call that is to be cut off gets no answer."""
        what = got.query.get("what") or json.loads(got.body)["what"]
        first = what not in dict(self.ledger)
        self.ledger.append((what, got.headers["idempotency-key"]))
        if first and what.endswith("call-arrived"):
            self.end.wait()
        return Answer({"done": what})

    def times(self) -> Counter[str]:
        """Return how often each thing was done."""
        return Counter(what for what, _ in self.ledger)


def reply(request: Recorded) -> Any:
    """Call the tool once with the question, then say that it is done."""
    messages = request.body["messages"]
    if messages[-1]["role"] == "tool":
        return "Done."
    return call(
        request.body["tools"][0]["function"]["name"], what=messages[-1]["content"]
    )


def queue(case: str, url: str, tools_url: str) -> Run:
    """Put the run of one case into the queue; an approved one with its yes."""
    kind = case.split()[0]
    effect = kind if kind in EFFECTS else "side_effect"
    owner = make_user("ann")
    tool = (
        function_tool(owner, "look_outside")
        if kind == "quick"
        else make_tool(
            owner,
            kind="http",
            effect=effect,
            timeout=600,
            args_schema=ARGUMENTS,
            config={"method": "GET" if effect == "read" else "POST", "url": tools_url},
        )
    )
    provider = make_provider(owner, base_url=url)
    agent = make_agent(owner, provider=provider, tools=(tool,))
    if kind in ("approved", "asking"):
        ask_before(agent, tool.name)
    run = started(agent, case)
    if kind == "approved":
        go_on(run)
        approve_step(run.steps.get().decisions.get(), by=owner)
    return run


def test_no_side_effect_happens_twice_without_approval(workers, tmp_path: Path):
    outside, plan = Outside(), tmp_path / "plan"
    with model_server(script=reply) as model, serve(outside.answer) as server:
        runs = {case: queue(case, model.base_url, server.url) for case in CASES}
        places = {str(run.pk): case.split()[1] for case, run in runs.items()}
        plan.write_text(json.dumps({**places, "outside": server.url}))
        hosts = f"provider=127.0.0.1;tool={server.url.removeprefix('http://')}"
        modules = "tests.faults.functions,tests.faults.worker.kill_points"
        first = workers.start(
            threads=len(CASES) + KEPT_SLOTS,  # all at once, also of one user
            AGENTSITE_LEASE_SECONDS="10",
            AGENTSITE_PRIVATE_HOSTS=hosts,
            AGENTSITE_TOOL_MODULES=modules,
            **{PLAN: str(plan)},
        )
        hanging = [case for case in CASES if case.endswith("call-arrived")]
        standing = len(CASES) - len(hanging)
        workers.wait(
            lambda: (
                all(outside.times()[case] for case in hanging)
                and len(lines_of(plan.with_suffix(".reached"))) == standing
            ),
            seconds=240,
        )
        done = tmp_path / "done"  # nobody stands still
        done.write_text(json.dumps({"outside": server.url}))
        first.kill()
        first.wait()
        done_before = outside.times()
        calls_before = calls_of_models(runs)
        workers.start(
            threads=len(CASES) + KEPT_SLOTS,
            AGENTSITE_LEASE_SECONDS="10",
            AGENTSITE_PRIVATE_HOSTS=hosts,
            AGENTSITE_TOOL_MODULES=modules,
            **{PLAN: str(done)},
        )
        workers.wait(lambda: settled(runs.values()), seconds=240)
        done_alone = outside.times()
        says = {case: status_of(run) for case, run in runs.items()}
        answer_all(runs, done_before)
        workers.wait(lambda: settled(runs.values(), ends=("succeeded",)), seconds=240)
        outside.end.set()

    kept = [case for case in CASES if calls_before[case] == 0]
    assert [case for case in kept if case.startswith("quick")] == [
        "quick before-call",
        "quick call-arrived",
        "quick before-outcome",
    ]
    repeats = ("read", "idempotent", "quick")
    changing = [case for case in CASES if case.split()[0] not in repeats]
    assert {case: says[case] for case in CASES} == {
        case: expected(case) for case in CASES
    }
    assert [case for case in changing if done_alone[case] > 1] == []
    assert {case: outside.times()[case] for case in changing} == dict.fromkeys(
        changing, 1
    )
    repeated = [case for case in CASES if outside.times()[case] == 2]
    assert repeated == [
        f"{effect} {place}"
        for effect in repeats
        for place in ("call-arrived", "before-outcome")
    ]
    keys = {
        case: {key for what, key in outside.ledger if what == case} for case in CASES
    }
    assert keys == {case: {f"{run.pk}:0"} for case, run in runs.items()}
    assert list(check_invariants()) == []


def expected(case: str) -> str:
    """Return where a run must be when another worker has done what it may alone."""
    kind, place = case.split()
    if kind == "asking":
        return "awaiting_approval"
    if kind in ("read", "idempotent", "quick"):
        return "succeeded"
    known = ("before-reply", "before-start", "after-outcome")
    return "succeeded" if place in known else "awaiting_decision"


def answer_all(runs: dict[str, Run], done: Counter[str]) -> None:
    """Answer as a person does who has looked at the ledger."""
    for case, run in runs.items():
        status = status_of(run)
        if status == "awaiting_approval":
            approve_step(run.steps.get().decisions.get(), by=run.owner)
        elif status == "awaiting_decision":
            question = run.steps.get().decisions.get(question="outcome")
            word = "happened" if done[case] else "retry"
            settle_outcome(question, by=run.owner, answer=word, result="done")


def calls_of_models(runs: dict[str, Run]) -> dict[str, int]:
    """Return how many replies of each run are stored."""
    return {case: run.calls.count() for case, run in runs.items()}


def status_of(run: Run) -> str:
    """Return the status as it is now."""
    return str(Run.objects.values_list("status", flat=True).get(pk=run.pk))


def settled(runs: Any, *, ends: tuple[str, ...] = ()) -> bool:
    """Whether every run has ended, or waits for a person."""
    ends = ends or ("succeeded", "awaiting_approval", "awaiting_decision")
    return all(status_of(run) in ends for run in runs)


def lines_of(path: Path) -> list[str]:
    """Return what was written so far."""
    return path.read_text().splitlines() if path.exists() else []
