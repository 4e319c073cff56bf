"""Check the limits and approval rules of a draft against stored runs.

Nothing is run: each stored run is decided twice, by the rules that it had and by those
of the draft, and the two decisions are compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from runs.engine.planning import PARSE_ERROR_TOOL
from runs.engine.types import Usage
from runs.evaluation.versions.policy import (
    PolicyRound,
    PolicyStep,
    PolicyVerdict,
    apply_policy,
)
from runs.models import Agent, AgentStep, ModelCall, Run, Spec
from runs.models.runs import FINISHED_STATUSES
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import load_spec

DAYS = 30
MAX_DAYS = 365
MAX_CHECKED = 1_000
"""Runs that are checked, the newest ones."""
BATCH = 50
"""Runs whose steps are in memory at once."""

PolicyChange = Literal["stops", "refused", "asks", "asks_no_more", "goes_on", "same"]


class CheckedRun(NamedTuple):
    """A stored run about which the draft decides differently."""

    run: Run
    change: PolicyChange
    """The most serious of its changes."""
    step: int | None
    """The first step that is decided differently; None if the run continues instead."""
    stop_reason: str
    """Where it stops under the draft, or stopped under its own rules."""
    tools: tuple[str, ...]
    """Those whose calls are decided differently."""


class CheckedTool(NamedTuple):
    """The calls of one tool in all checked runs."""

    tool: str
    calls: int
    asked_before: int
    asked: int
    refused: int


class PolicyCheck(NamedTuple):
    """What the draft would have decided."""

    days: int
    checked: int
    total: int
    """Runs of these days; more than `checked` if there are too many."""
    runs: list[CheckedRun]
    """Those with a change, newest first."""
    tools: list[CheckedTool]

    @property
    def counts(self) -> Counter[str]:
        counts = Counter[str](one.change for one in self.runs)
        counts["same"] = self.checked - len(self.runs)
        return counts


class ToolCounts(NamedTuple):
    """Indexes count as they are decided."""

    calls: Counter[str]
    asked_before: Counter[str]
    asked: Counter[str]
    refused: Counter[str]


def check_policy(agent: Agent, *, by: User, days: int = DAYS) -> PolicyCheck:
    """Compare the draft with what was decided in the runs that `by` may see."""
    draft = freeze_agent(agent)
    rows = find_checked_runs(agent, by=by, days=days)
    runs = list(rows.order_by("-pk")[:MAX_CHECKED])
    rules = Spec.objects.filter(pk__in={run.spec_id for run in runs})
    specs = {one.pk: load_spec(one) for one in rules}
    counts = ToolCounts(Counter(), Counter(), Counter(), Counter())
    changed: list[CheckedRun] = []
    for start in range(0, len(runs), BATCH):
        batch = runs[start : start + BATCH]
        rounds = load_rounds(batch)
        for run in batch:
            wanted_more = run.status == Run.Status.LIMIT_REACHED
            before, after = (
                apply_policy(spec, rounds[run.pk], wanted_more=wanted_more)
                for spec in (specs[run.spec_id], draft)
            )
            count_decisions(counts, rounds[run.pk], before, after)
            checked = compare_verdicts(run, rounds[run.pk], before, after)
            if checked.change != "same":
                changed.append(checked)
    total = len(runs) if len(runs) < MAX_CHECKED else rows.count()
    return PolicyCheck(days, len(runs), total, changed, list_checked_tools(counts))


def find_checked_runs(agent: Agent, *, by: User, days: int) -> QuerySet[Run]:
    """Return the ended real runs; a person has lifted the limits of resumed ones."""
    return Run.objects.visible_to(by).filter(
        agent=agent,
        is_test=False,
        forked_from=None,
        resumes=None,
        status__in=FINISHED_STATUSES,
        created_at__gte=timezone.now() - timedelta(days=days),
    )


def load_rounds(runs: Sequence[Run]) -> dict[int, list[PolicyRound]]:
    """Return the model calls of each run in order, with their steps."""
    steps: dict[int, list[PolicyStep]] = defaultdict(list)
    rows = AgentStep.objects.filter(run__in=runs).order_by("run", "index")
    for step in rows.only(
        *("run", "index", "model_call", "tool", "tool_ref", "tool_input"),
        *("observation", "effect", "elapsed", "usage"),
    ).iterator(chunk_size=500):
        steps[step.model_call_id].append(build_policy_step(step))
    found: dict[int, list[PolicyRound]] = {run.pk: [] for run in runs}
    calls = ModelCall.objects.filter(run__in=runs).exclude(purpose="early_stop")
    for call in calls.defer("reply", "settings").order_by("run", "number"):
        taken = tuple(steps[call.pk])
        found[call.run_id].append(
            PolicyRound(
                usage=Usage(
                    input_tokens=call.input_tokens,
                    output_tokens=call.output_tokens,
                    cached_tokens=call.cached_tokens,
                ),
                elapsed=call.elapsed,
                steps=taken,
                is_parse_error=any(one.tool == PARSE_ERROR_TOOL for one in taken),
            )
        )
    return found


def build_policy_step(step: AgentStep) -> PolicyStep:
    used = step.usage or {}
    return PolicyStep(
        at_index=step.index,
        tool=step.tool,
        tool_id=step.tool_ref_id,
        tool_input=step.tool_input,
        observation=step.observation,
        is_call=bool(step.effect),
        elapsed=step.elapsed or 0.0,
        tokens=used.get("tokens") or 0,
        cost=float(used.get("cost") or 0),
    )


def compare_verdicts(
    run: Run,
    rounds: Iterable[PolicyRound],
    before: PolicyVerdict,
    after: PolicyVerdict,
) -> CheckedRun:
    """Return what the draft decides differently; the most serious difference counts."""
    end = after.stopped_at
    refused = after.refused - before.refused
    asked = after.asked - before.asked
    no_more = {
        index for index in before.asked - after.asked if end is None or index < end
    }
    change: PolicyChange = "same"
    steps: set[int] | frozenset[int] = set()
    reason = ""
    if end is not None and (before.stopped_at is None or end < before.stopped_at):
        change, steps, reason = "stops", {end}, after.stop_reason
    elif refused:
        change, steps = "refused", refused
    elif asked:
        change, steps = "asks", asked
    elif no_more:
        change, steps = "asks_no_more", no_more
    elif before.stopped_at is not None and end is None:
        change, reason = "goes_on", before.stop_reason
    names = {step.at_index: step.tool for one in rounds for step in one.steps}
    tools = () if change == "stops" else (names[index] for index in sorted(steps))
    return CheckedRun(
        run, change, min(steps, default=None), reason, tuple(dict.fromkeys(tools))
    )


def count_decisions(
    counts: ToolCounts,
    rounds: Iterable[PolicyRound],
    before: PolicyVerdict,
    after: PolicyVerdict,
) -> None:
    for step in (step for one in rounds for step in one.steps if step.is_call):
        counts.calls[step.tool] += 1
        counts.asked_before[step.tool] += step.at_index in before.asked
        counts.asked[step.tool] += step.at_index in after.asked
        counts.refused[step.tool] += step.at_index in after.refused


def list_checked_tools(counts: ToolCounts) -> list[CheckedTool]:
    """Return the tools, those with the most changes first."""
    found = [
        CheckedTool(
            tool,
            calls,
            counts.asked_before[tool],
            counts.asked[tool],
            counts.refused[tool],
        )
        for tool, calls in counts.calls.items()
    ]
    return sorted(
        found,
        key=lambda one: (-one.refused, -abs(one.asked - one.asked_before), one.tool),
    )
