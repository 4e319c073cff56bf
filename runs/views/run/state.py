"""The state of a run in words and numbers, for its header."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from runs.engine.types import Budget, ExecutorOptions
from runs.llm.retry import MAX_ATTEMPTS
from runs.models import AgentStep, Decision, ModelAttempt, Resume, Run, Worker
from runs.templatetags.look import duration
from runs.views.timeline import Scale, Timeline

PLACES_COUNTED = 1_000
SHORTEST_SHARE = 0.05
"""Seconds of a kind of time that are worth naming."""
LONG_WAIT = 120
"""Seconds from which a wait is written in minutes or hours."""
NEAR, USED_UP = 20, 5
"""Percent left from which a limit is shown as near, and as used up."""

LIMIT_WORDS = {
    "iterations": "its limit of rounds",
    "time": "its limit of working time",
    "tokens": "its budget of tokens",
    "cost": "its budget of money",
    "loop": "a loop: the same calls gave the same results again and again",
    "expired": "the end of the time in which a person could have approved",
}


@dataclass(frozen=True)
class Meter:
    """One figure of the header; `left` in percent where there is a limit."""

    label: str
    value: str
    of: str = ""
    left: int | None = None
    ticks_from: float | None = None
    """Seconds, where the page's script counts on."""

    @property
    def tone(self) -> str:
        """How near the limit is."""
        if self.left is None or self.left >= NEAR:
            return ""
        return "bad" if self.left <= USED_UP else "need"


class Parent(NamedTuple):
    """The run whose step waits for this one, and the number of that step."""

    run: int
    step: int


class Share(NamedTuple):
    """A part of a run's time; places in percent."""

    tone: str
    word: str
    seconds: float
    x: str
    width: str
    percent: int


def shares_of(spans: list[tuple[str, str, float]]) -> list[Share]:
    """Return spans of time as parts of a whole, one after another."""
    whole, at, shares = sum(seconds for *_, seconds in spans) or 1.0, 0.0, []
    for tone, word, seconds in spans:
        if seconds < SHORTEST_SHARE:
            continue
        part = seconds / whole * 100
        shares.append(
            Share(tone, word, seconds, f"{at:.2f}%", f"{part:.2f}%", round(part))
        )
        at += part
    return shares


@dataclass
class RunState:
    """A run, and what its header says that is not in its row."""

    run: Run
    timeline: Timeline
    limits: ExecutorOptions
    doing: list[str] = field(default_factory=list)
    """Tools of calls that are planned or running."""
    place: int | None = None
    """In the queue, from 1."""
    has_worker: bool = True
    now: datetime = field(default_factory=timezone.now)

    @property
    def is_asking(self) -> bool:
        """Whether the model is being asked."""
        return self.run.status == Run.Status.RUNNING and not self.doing

    @property
    def has_open_call(self) -> bool:
        """Whether a model call has no reply yet, though it may rest before a retry."""
        return self.is_asking or bool(self.failed)

    @property
    def is_working(self) -> bool:
        """Whether a worker is on it, as far as its signs of life tell."""
        return self.run.status == Run.Status.RUNNING and not self.is_lost

    @cached_property
    def failed(self) -> list[ModelAttempt]:
        """Attempts of the model call under way that have failed."""
        if self.run.is_over or self.doing:
            return []
        run = self.run
        return list(ModelAttempt.objects.filter(run=run, number=run.next_number))

    @property
    def retry_at(self) -> datetime | None:
        """When the model is asked again after a failed attempt; perhaps past."""
        last = self.failed[-1] if self.failed else None
        if last is None or last.retry_in is None:
            return None
        return last.started_at + timedelta(seconds=last.elapsed + last.retry_in)

    @property
    def asking(self) -> str:
        """How far asking the model is, in words."""
        if not self.failed:
            return f"the model {self._is_or_was} asked"
        number = self.failed[-1].attempt + 1
        of = f" of {MAX_ATTEMPTS}" if number <= MAX_ATTEMPTS else ""
        due = self.retry_at
        wait = (due - self.now).total_seconds() if due else 0
        return f"attempt {number}{of}" + (f" in {_wait(wait)}" if wait >= 1 else "")

    @property
    def beat(self) -> datetime | None:
        """When the worker last renewed its lease."""
        if self.run.lease_until is None:
            return None
        return self.run.lease_until - timedelta(seconds=settings.LEASE_SECONDS)

    @property
    def is_lost(self) -> bool:
        """Whether the lease has run out, so that another worker picks the run up."""
        return is_lost(self.run.status, self.run.lease_until, now=self.now)

    @property
    def _is_or_was(self) -> str:
        return "was" if self.is_lost else "is"

    @property
    def round(self) -> int:
        """The round that a running run is in."""
        return self.run.rounds if self.doing else self.run.rounds + 1

    @property
    def activity(self) -> str:
        """What a running run does in that round, in words."""
        if self.doing and self.is_lost:
            return f"{names_of(self.doing)} had begun"
        return running(self.doing) if self.doing else self.asking

    @property
    def stop_words(self) -> str:
        """Why a stopped run stopped."""
        return stop_words(self.run, self.limits)

    @property
    def took(self) -> float | None:
        """Seconds from the first claim to the end."""
        if self.run.started_at is None or self.run.ended_at is None:
            return None
        return (self.run.ended_at - self.run.started_at).total_seconds()

    @property
    def queue_wait(self) -> float | None:
        """Seconds before a worker first took it."""
        if self.run.started_at is None:
            return None
        waited = (self.run.started_at - self.run.created_at).total_seconds()
        return max(waited, 0.0)

    @property
    def stop_wait(self) -> float | None:
        """Seconds from the wish to stop to the end."""
        asked, ended = self.run.cancel_requested_at, self.run.ended_at
        return (ended - asked).total_seconds() if asked and ended else None

    @property
    def scale(self) -> Scale:
        """The width of the time axis."""
        return Scale.fitting(self.seconds)

    @property
    def ticks(self) -> list[float]:
        """Seconds at the lines of the time axis; none before anything ran."""
        return self.scale.ticks if self.seconds else []

    @property
    def seconds(self) -> float:
        """Seconds on the time scale: up to now, or to the last sign of life."""
        if self.was_cut_off:
            return self.timeline.end(self.run.ended_at)
        if self.is_lost:
            return self.timeline.end(self.beat)
        return self.timeline.end(self.now if self.is_working else None)

    @property
    def lasting(self) -> float:
        """Seconds of the work under way, which has no record yet, or was cut off."""
        is_counted = self.run.status == Run.Status.RUNNING or self.was_cut_off
        return max(self.seconds - self.timeline.end(), 0.0) if is_counted else 0.0

    @property
    def worked(self) -> float:
        """Seconds of its own work: without waiting, and without other agents."""
        busy = self.timeline.busy
        return busy.get("model", 0.0) + busy.get("tool", 0.0) + self.lasting

    @cached_property
    def was_cut_off(self) -> bool:
        """Whether it was cancelled during work, not while it waited for a person."""
        run = self.run
        if run.status != Run.Status.CANCELLED or run.started_at is None:
            return False
        asked = Decision.objects.filter(step__run=run)
        return not asked.filter(answer=Decision.Answer.WITHDRAWN).exists()

    @property
    def parent(self) -> Parent | None:
        """Where this run was called, if another run did."""
        step = self.run.parent_step
        if step is None:
            return None
        return Parent(step.run_id, step.index + step.model_call.number + 2)

    @property
    def shares(self) -> list[Share]:
        """How long the model, the tools and waiting took, up to now."""
        busy = dict(self.timeline.busy)
        if self.run.status == Run.Status.RUNNING:
            kind = "tool" if self.doing else "model"
            busy[kind] = busy.get(kind, 0.0) + self.lasting
        model, tool = busy.get("model", 0.0), busy.get("tool", 0.0)
        spans = [
            ("model", "Model", model),
            ("tool", "Tools", tool),
            ("run", "Agents", busy.get("run", 0.0)),
            ("wait", "Waiting", self.timeline.waited),
        ]
        return shares_of(spans)

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.run.input_tokens + self.run.output_tokens

    @property
    def agent_url(self) -> str:
        """Where the agent is built; empty while there is no such page."""
        for name in ("agent-detail", "agent-edit"):
            for key in (self.run.agent.pk, self.run.agent.slug):
                try:
                    return reverse(name, args=[key])
                except NoReverseMatch:
                    continue
        return ""

    @property
    def meters(self) -> list[Meter]:
        """Time, rounds, tokens and cost, with what is left of each limit."""
        run, limits = self.run, self.limits
        budget = limits.budget or Budget()
        seconds = self.worked
        ticks = seconds if self.is_working else None
        has_price = bool(run.spec.body.get("prices")) or run.cost > 0
        return [
            Meter(
                "Working time",
                duration(seconds) if seconds else "0 s",
                duration(limits.max_execution_time),
                left(seconds, limits.max_execution_time),
                ticks,
            ),
            Meter(
                "Rounds",
                f"{run.rounds:,}",
                f"{limits.max_iterations:,}" if limits.max_iterations else "",
                left(run.rounds, limits.max_iterations),
            ),
            Meter(
                "Tokens",
                f"{self.tokens:,}",
                f"{budget.tokens:,}" if budget.tokens else "",
                left(self.tokens, budget.tokens),
            ),
            Meter(
                "Cost",
                money(float(run.cost)) if has_price else "no price",
                money(budget.cost) if budget.cost else "",
                left(float(run.cost), budget.cost),
            ),
        ]


def state_of(run: Run, timeline: Timeline) -> RunState:
    """Return the state of one run, all of it read now."""
    return states_of([(run, timeline)])[0]


def states_of(runs: Sequence[tuple[Run, Timeline]]) -> list[RunState]:
    """Return the states of runs, read with as many queries as for one."""
    ids = [run.pk for run, _ in runs]
    queued = [run.pk for run, _ in runs if run.status == Run.Status.QUEUED]
    resumes: dict[int, list[Resume]] = {}
    for resume in Resume.objects.filter(run__in=ids):
        resumes.setdefault(resume.run_id, []).append(resume)
    doing, alive = doing_of(ids), has_worker()
    places = places_of(queued) if queued else {}
    return [
        RunState(
            run=run,
            timeline=timeline,
            limits=limits_with(run, resumes.get(run.pk, ())),
            doing=doing.get(run.pk, []),
            place=places.get(run.pk),
            has_worker=alive,
        )
        for run, timeline in runs
    ]


def stop_words(run: Run, limits: ExecutorOptions) -> str:
    """Say what a stopped run has reached."""
    if run.stop_reason == Run.StopReason.ITERATIONS:
        most = limits.max_iterations
        return f"its limit of {most} round{'' if most == 1 else 's'}"
    return LIMIT_WORDS.get(run.stop_reason, "a limit")


def limits_of(run: Run) -> ExecutorOptions:
    """Return the limits that count now: the spec's, and those of the last resume."""
    return limits_with(run, Resume.objects.filter(run=run))


def limits_with(run: Run, resumes: Iterable[Resume]) -> ExecutorOptions:
    """Return the limits that count after the resumes."""
    options = dict(run.spec.body.get("executor") or {})
    for resume in resumes:
        options.update(resume.limits)
    return ExecutorOptions.model_validate(options)


def doing_of(run_ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the tools whose calls are planned or running, by run."""
    found: dict[int, list[str]] = {}
    # Only calls of the last reply can be open; a run may have thousands of steps.
    rows = AgentStep.objects.filter(
        model_call__run_id__in=run_ids,
        model_call__number=F("model_call__run__next_number") - 1,
        status__in=["planned", "started"],
    )
    for run_id, tool in rows.order_by("index").values_list("run_id", "tool"):
        found.setdefault(run_id, []).append(tool)
    return found


def places_of(run_ids: Iterable[int]) -> dict[int, int]:
    """Return the place of queued runs, from 1; far down a long one, none."""
    wanted = set(run_ids)
    queue = Run.objects.filter(status=Run.Status.QUEUED).order_by("queued_at", "pk")
    ids = queue.values_list("pk", flat=True)[:PLACES_COUNTED]
    return {pk: place for place, pk in enumerate(ids, 1) if pk in wanted}


def is_lost(
    status: str, lease: datetime | None, *, now: datetime | None = None
) -> bool:
    """Whether a run is said to run, but its worker has not renewed its lease."""
    if status != Run.Status.RUNNING or lease is None:
        return False
    return lease < (now or timezone.now())


def has_worker() -> bool:
    """Whether a worker lives."""
    since = timezone.now() - timedelta(seconds=max(settings.LEASE_SECONDS, 10))
    return Worker.objects.filter(stopped_at=None, last_heartbeat__gt=since).exists()


def _wait(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < LONG_WAIT else duration(seconds)


def running(tools: list[str]) -> str:
    """Say which tools run."""
    return f"{names_of(tools)} {'are' if len(tools) > 1 else 'is'} running"


def names_of(tools: list[str]) -> str:
    """Name tools, the first two of many."""
    if len(tools) > 2:
        return f"{tools[0]}, {tools[1]} and {len(tools) - 2} more"
    return " and ".join(tools)


def left(used: float, limit: float | None) -> int | None:
    """Return the percent of a limit that is left; None without a limit.

    All is left only where nothing is used.
    """
    if not limit:
        return None
    return max(0, min(99 if used else 100, round((1 - used / limit) * 100)))


def money(cost: float) -> str:
    """Write a cost with as many digits as it needs."""
    is_whole_cents = round(cost * 100, 6).is_integer()
    return f"${cost:,.2f}" if cost >= 1 or is_whole_cents else f"${cost:.4f}"


def context_of(state: RunState) -> dict[str, Any]:
    """Return what the parts of the header show."""
    return {"state": state, "run": state.run}
