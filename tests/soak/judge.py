"""What must be true after a soak, and what was not."""

import re
from collections import Counter
from collections.abc import Iterator

from runs.models import AgentStep, Run
from runs.services.health.invariants import check_invariants
from tests.soak.model import answer_to

SIDE_EFFECTS = ("pay", "sign")
QUICK_READ = "look"
NEVER_RAN = ("planned", "awaiting_approval", "rejected")


def violations(ledger: list[str]) -> Iterator[str]:
    """Yield a sentence for each thing that must not be."""
    for violation in check_invariants():
        yield str(violation)
    for run in Run.objects.order_by("pk"):
        yield from wrong_end(run)
    yield from wrong_calls(Counter(ledger))


def wrong_end(run: Run) -> Iterator[str]:
    """Every run is over, as it should be."""
    number, rounds = (int(n) for n in re.findall(r"\d+", run.inputs["input"])[:2])
    if not run.is_over:
        yield f"run {run.pk} is {run.status} for ever"
    elif run.status == "failed" and run.error_code != "crashed_repeatedly":
        yield f"run {run.pk} failed: {run.error_code}: {run.error_message}"
    elif run.status == "canceled" and run.cancel_requested_at is None:
        yield f"run {run.pk} was canceled, and nobody asked for it"
    elif run.status == "limit_reached":
        yield f"run {run.pk} stopped: {run.stop_reason}"
    elif run.status == "succeeded" and run.output != answer_to(number, rounds):
        yield f"run {run.pk} answered {run.output!r}"


def wrong_calls(ledger: Counter[str]) -> Iterator[str]:
    """No call happened twice that must not, and none that was not recorded."""
    seen: set[str] = set()
    steps = AgentStep.objects.prefetch_related("decisions").select_related("run")
    for step in steps.iterator(chunk_size=500):
        line = f"{step.tool} {step.tool_input['call']}"
        seen.add(line)
        count = ledger[line]
        allowed = step.attempts
        if step.tool == QUICK_READ:  # each lost worker may have read and stored nothing
            allowed += max(step.run.fence - 1, 0)
        if step.tool in SIDE_EFFECTS:
            retries = [d for d in step.decisions.all() if d.answer == "retry"]
            allowed = min(1 + len(retries), step.attempts)
        if step.status in NEVER_RAN:
            allowed = 0
        if count > allowed:
            yield (
                f"run {step.run_id} step {step.index} ({line}) happened {count} times, "
                f"allowed {allowed}; it is {step.status}"
            )
        if count == 0 and step.status == "succeeded" and not step.decisions.exists():
            yield f"run {step.run_id} step {step.index} ({line}) never happened"
    lost = count_lost_workers()
    for line in ledger.keys() - seen:
        tool, _, call = line.partition(" ")
        allowed = lost[int(call.split(".")[0])] if tool == QUICK_READ else 0
        if ledger[line] > allowed:
            yield f"{line!r} happened and no step says so"


def count_lost_workers() -> Counter[int]:
    """Count workers that runs lost, by the question, where nobody continued them.

    Each may have read something in the moment before it would have stored that.
    """
    ended = Run.objects.filter(status__in=("canceled", "failed"), fence__gt=1)
    return Counter(
        {question_number(run): run.fence - 1 for run in ended.only("inputs", "fence")}
    )


def question_number(run: Run) -> int:
    return int(re.findall(r"\d+", run.inputs["input"])[0])
