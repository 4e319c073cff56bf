"""Replay the last real inputs of an agent by its draft, with nothing sent."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from runs.engine.types import AgentSpec, ToolMode
from runs.models import (
    Agent,
    AgentStep,
    AgentVersion,
    InputReplay,
    ReplayedInput,
    Run,
)
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import InputsRefused
from runs.services.runs.start import freeze_newest_version, start_run
from runs.services.tool_modes.changed_tools import compare_shared_tools
from runs.store.specs import load_spec

MAX_REPLAYED = 50
ANSWERED = ("succeeded", "limit_reached", "failed")
AnsweredBy = AgentStep.AnsweredBy

ReplayChange = Literal[
    "running",
    "failed",
    "new_call",
    "no_recording",
    "refused",
    "fewer",
    "arguments",
    "same",
]


class ReplayedRun(NamedTuple):
    """A real run beside the one that replays it."""

    recorded: Run
    run: Run
    change: ReplayChange
    tools: tuple[str, ...]
    """The tools that differ."""
    recorded_steps: int
    steps: int


class ReplayedCalls(NamedTuple):
    """The calls of one tool in all replays."""

    tool: str
    effect: str
    arguments: Any
    """Of its last call."""
    recorded: int
    draft: int
    refused: int
    """Further calls of the draft that were not valid, so no tool was called."""


class ReplayReport(NamedTuple):
    """A replay as it is now."""

    replay: InputReplay
    runs: list[ReplayedRun]
    calls: list[ReplayedCalls]

    @property
    def is_running(self) -> bool:
        return any(one.change == "running" for one in self.runs)

    @property
    def counts(self) -> Counter[str]:
        return Counter(one.change for one in self.runs)

    @property
    def cost(self) -> Decimal:
        return sum((one.run.cost for one in self.runs), Decimal(0))

    @property
    def seconds(self) -> float | None:
        """From the start to the end of the last run; null while one is running."""
        if self.is_running or not self.runs:
            return None
        ends = [one.run.ended_at for one in self.runs if one.run.ended_at]
        return (max(ends) - self.replay.created_at).total_seconds() if ends else None


def start_input_replay(agent: Agent, *, by: User, count: int) -> InputReplay | None:
    """Start runs of the draft on the newest real inputs; None if there are none.

    Only runs that `by` may see are replayed. Tool calls are answered from their
    recordings; none is sent. Raises what `start_run` raises.
    """
    frozen = freeze_newest_version(agent, draft=True)
    recorded = list(find_real_runs(agent, by=by)[: min(count, MAX_REPLAYED)])
    with transaction.atomic():
        replay = InputReplay.objects.create(
            agent=agent, owner=by, digest=frozen.row.digest
        )
        for run in recorded:
            mode = ToolMode(kind="replay_by_tool", recording=run.pk)
            try:
                started = start_run(
                    agent,
                    by=by,
                    inputs=run.inputs,
                    source=Run.Source.EXPERIMENT,
                    is_test=True,
                    frozen=frozen,
                    tool_mode=mode,
                    queue=Run.Queue.BULK,
                )
            except InputsRefused:
                continue  # the draft has other variables
            ReplayedInput.objects.create(replay=replay, recorded=run, run=started)
        if not replay.inputs.exists():
            transaction.set_rollback(True)
            return None
    return replay


def find_changed_tools(agent: Agent, draft: AgentSpec, *, by: User) -> list[str]:
    """Return the tools of the draft whose recordings are of another definition."""
    version = find_version_with_runs(agent, list_answered_runs(agent, by=by))
    if version is None:
        return []
    return compare_shared_tools(load_spec(version.spec), draft)


def find_real_runs(agent: Agent, *, by: User) -> QuerySet[Run]:
    """Return the real runs of the newest version that used it, newest first."""
    rows = list_answered_runs(agent, by=by)
    version = find_version_with_runs(agent, rows)
    return rows.filter(version=version).order_by("-pk") if version else rows.none()


def list_answered_runs(agent: Agent, *, by: User) -> QuerySet[Run]:
    """Return the real runs of published versions that have ended, in no order."""
    rows: QuerySet[Run] = Run.objects.visible_to(by).filter(
        agent=agent,
        is_test=False,
        parent_step=None,
        forked_from=None,
        version__isnull=False,
        status__in=ANSWERED,
    )
    return rows.order_by()


def find_version_with_runs(agent: Agent, rows: QuerySet[Run]) -> AgentVersion | None:
    """Return the newest version with such runs: few versions are looked at, no runs."""
    used = Exists(rows.filter(version=OuterRef("pk")))
    versions = agent.versions.filter(used).select_related("spec")
    return versions.order_by("-number").first()


def load_input_replay(agent: Agent, digest: str, *, by: User) -> ReplayReport | None:
    """Return the newest replay of this draft that `by` has started."""
    replay = InputReplay.objects.filter(agent=agent, digest=digest, owner=by).first()
    if replay is None:
        return None
    pairs = replay.inputs.filter(recorded__isnull=False, run__isnull=False)
    rows = list(pairs.select_related("recorded", "run"))
    keys = [key for one in rows for key in (one.recorded_id, one.run_id)]
    steps: dict[int, list[AgentStep]] = {key: [] for key in keys if key}
    refused: dict[int, Counter[str]] = {key: Counter() for key in steps}
    found = AgentStep.objects.filter(run__in=steps).exclude(tool__startswith="_")
    fields = ("run", "tool", "tool_input", "effect", "answered_by")
    for step in found.only(*fields).order_by("run", "index"):
        if step.effect:
            steps[step.run_id].append(step)
        else:
            refused[step.run_id][step.tool] += 1
    runs = [
        compare_replay(one.recorded, one.run, steps, refused[one.run.pk])
        for one in rows
        if one.recorded and one.run
    ]
    return ReplayReport(replay, runs, list(count_calls(runs, steps, refused)))


def compare_replay(
    recorded: Run, run: Run, steps: dict[int, list[AgentStep]], refused: Counter[str]
) -> ReplayedRun:
    """Say what the draft did differently; the gravest difference counts.

    `refused` are calls of `run` that were not valid, by tool.
    """
    before, after = steps[recorded.pk], steps[run.pk]
    was = Counter(step.tool for step in before)
    now = Counter(step.tool for step in after)
    writes = {step.tool for step in after if step.effect != "read"}
    unrecorded = list_tools_answered(after, AnsweredBy.NO_RECORDING)
    other = list_tools_answered(after, AnsweredBy.OTHER_ARGUMENTS)
    new = [tool for tool in now - was if tool in writes]
    now_refused = [tool for tool in was - now if tool in refused]
    change: ReplayChange
    tools: list[str] = []
    if run.status not in FINISHED_STATUSES:
        change = "running"
    elif run.status != "succeeded" and run.status != recorded.status:
        change = "failed"
    elif new:
        change, tools = "new_call", new
    elif unrecorded:
        change, tools = "no_recording", unrecorded
    elif now_refused:
        change, tools = "refused", now_refused
    elif was - now:
        change, tools = "fewer", list(was - now)
    elif other:
        change, tools = "arguments", other
    else:
        change = "same"
    return ReplayedRun(recorded, run, change, tuple(tools), len(before), len(after))


def list_tools_answered(steps: Iterable[AgentStep], by: str) -> list[str]:
    return list(dict.fromkeys(step.tool for step in steps if step.answered_by == by))


def count_calls(
    runs: Iterable[ReplayedRun],
    steps: dict[int, list[AgentStep]],
    refused: dict[int, Counter[str]],
) -> Iterable[ReplayedCalls]:
    """Yield the calls by tool; those that change something come first."""
    was: Counter[str] = Counter()
    now: Counter[str] = Counter()
    not_valid: Counter[str] = Counter()
    last: dict[str, AgentStep] = {}
    for one in runs:
        not_valid += refused[one.run.pk]
        for key, counts in ((one.recorded.pk, was), (one.run.pk, now)):
            for step in steps[key]:
                counts[step.tool] += 1
                last[step.tool] = step
    order = sorted(last, key=lambda tool: (last[tool].effect == "read", tool))
    for tool in order:
        step = last[tool]
        yield ReplayedCalls(
            tool,
            step.effect,
            step.tool_input,
            recorded=was[tool],
            draft=now[tool],
            refused=not_valid[tool],
        )
