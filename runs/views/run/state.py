"""The state of a run as text and numbers, for its header."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.types import Budget, ExecutorOptions
from runs.llm.retry import MAX_ATTEMPTS
from runs.models import AgentStep, Decision, ModelAttempt, Resume, Run
from runs.services.health.workers import has_live_worker, is_lease_expired
from runs.services.providers.run_wait import RunWait, get_run_wait
from runs.services.runs.limit_wait import get_limit_wait
from runs.services.runs.limits import apply_resume_limits
from runs.services.tool_modes.changed_tools import find_changed_tools
from runs.store.database_clock import read_time_for_runs
from runs.ui.format import duration, money, number
from runs.ui.run_wait import describe_limit_wait, describe_run_wait
from runs.ui.time_scale import LONGEST_WAIT, SHOWN_WAIT, Timeline, TimeScale

MAX_QUEUE_PLACES = 1_000
MIN_SHOWN_SECONDS = 0.05
"""Seconds from which a kind of time is shown."""
MIN_NAMED_WAIT_SECONDS = 1.0
"""Seconds of waiting from which they are named beside the duration."""
LONG_WAIT_SECONDS = 120
"""Seconds from which a wait is written in minutes or hours."""
NEAR_LIMIT_PERCENT, USED_UP_PERCENT = 20, 5
"""Percent left from which a limit is shown as near, and as used up."""

LIMIT_DESCRIPTIONS = {
    "iterations": gettext_lazy("Round limit reached"),
    "time": gettext_lazy("Working time limit reached"),
    "tokens": gettext_lazy("Token budget reached"),
    "cost": gettext_lazy("Cost budget reached"),
    "loop": gettext_lazy("Loop detected: the same calls returned the same results"),
    "expired": gettext_lazy("Approval expired"),
}


@dataclass(frozen=True)
class Meter:
    """One figure of the header; `left` in percent if there is a limit."""

    label: str
    value: str
    of: str = ""
    left: int | None = None
    ticks_from: float | None = None
    """Seconds from which the page's script counts on."""
    is_over: bool = False
    """Whether the run has ended, so that what was used is shown."""

    @property
    def share(self) -> int:
        """The percentage that the bar fills: what `share_text` says."""
        left = self.left or 0
        return 100 - left if self.is_over else left

    @property
    def share_text(self) -> str:
        """The percentage of the limit that is left, or that was used in the end."""
        if self.left is None:
            return ""
        if self.is_over:
            return _("%(percent)s%% used") % {"percent": self.share}
        return _("%(percent)s%% left") % {"percent": self.left}

    @property
    def tone(self) -> str:
        if self.left is None or self.left >= NEAR_LIMIT_PERCENT:
            return ""
        return "bad" if self.left <= USED_UP_PERCENT else "need"


class ParentStep(NamedTuple):
    """The run that started this one, and the number of the step."""

    run: int
    step: int


class TimeShare(NamedTuple):
    """A part of a run's time; places in percent."""

    tone: str
    word: str
    seconds: float
    x: str
    width: str
    percent: int


def build_time_shares(spans: list[tuple[str, str, float]]) -> list[TimeShare]:
    """Return spans of time as parts of a whole, one after another."""
    whole, at, shares = sum(seconds for *_, seconds in spans) or 1.0, 0.0, []
    for tone, word, seconds in spans:
        if seconds < MIN_SHOWN_SECONDS:
            continue
        part = seconds / whole * 100
        shares.append(
            TimeShare(tone, word, seconds, f"{at:.2f}%", f"{part:.2f}%", round(part))
        )
        at += part
    return shares


@dataclass
class RunState:
    """A run, and what its header shows beside its row."""

    run: Run
    timeline: Timeline
    limits: ExecutorOptions
    now: datetime
    """By the database's clock, while the run runs or waits."""
    open_tools: list[str] = field(default_factory=list)
    """Tools of calls that are planned or running."""
    place: int | None = None
    """In the queue, from 1."""
    has_worker: bool = True
    changed_tools: list[str] = field(default_factory=list)
    """Of an ended replay: tools that have changed since the recording."""
    is_writing: bool = False
    """Whether the text of the model call is being streamed, as the live hub knows."""

    @property
    def is_asking(self) -> bool:
        return self.run.status == Run.Status.RUNNING and not self.open_tools

    @property
    def has_open_call(self) -> bool:
        """Whether a model call has no reply yet; it may wait for a retry."""
        return self.is_asking or bool(self.failed) or self.wait is not None

    @property
    def is_working(self) -> bool:
        """Whether a worker executes it, as far as its heartbeats show."""
        return self.run.status == Run.Status.RUNNING and not self.is_lost

    @cached_property
    def failed(self) -> list[ModelAttempt]:
        if self.run.is_over or self.open_tools:
            return []
        run = self.run
        return list(ModelAttempt.objects.filter(run=run, number=run.next_number))

    @cached_property
    def wait(self) -> RunWait | None:
        """What a waiting run waits for, if that is its provider."""
        return get_run_wait(self.run)

    @property
    def limit_wait_text(self) -> str:
        """Which limit a waiting run waits for; empty if it waits otherwise."""
        wait = get_limit_wait(self.run)
        return describe_limit_wait(wait) if wait is not None else ""

    @property
    def retry_at(self) -> datetime | None:
        """When the model call is retried; may be past."""
        last = self.failed[-1] if self.failed else None
        if last is None or last.retry_in is None:
            return None
        return last.started_at + timedelta(seconds=last.elapsed + last.retry_in)

    @property
    def call_progress_text(self) -> str:
        if self.is_writing:
            return _("The model is writing")
        if text := self.limit_wait_text:
            return text
        if self.wait is not None:
            return describe_run_wait(self.wait, self.now)
        if not self.failed:
            if self.is_lost:
                return _("Model call interrupted")
            return _("Waiting for the model")
        due = self.retry_at
        wait = (due - self.now).total_seconds() if due else 0
        attempt = self.failed[-1].attempt + 1
        values = {"attempt": attempt, "most": MAX_ATTEMPTS, "wait": _format_wait(wait)}
        if attempt > MAX_ATTEMPTS:
            if wait >= 1:
                return _("Attempt %(attempt)s in %(wait)s") % values
            return _("Attempt %(attempt)s") % values
        if wait >= 1:
            return _("Attempt %(attempt)s of %(most)s in %(wait)s") % values
        return _("Attempt %(attempt)s of %(most)s") % values

    @property
    def last_heartbeat(self) -> datetime | None:
        """When the worker last renewed its lease."""
        if self.run.lease_until is None:
            return None
        return self.run.lease_until - timedelta(seconds=settings.LEASE_SECONDS)

    @property
    def is_lost(self) -> bool:
        """Whether the lease has run out, so that another worker picks the run up."""
        return is_lease_expired(self.run.status, self.run.lease_until, self.now)

    @property
    def round(self) -> int:
        return self.run.rounds if self.open_tools else self.run.rounds + 1

    @property
    def activity(self) -> str:
        if not self.open_tools:
            return self.call_progress_text
        if self.is_lost:
            return _("%(tools)s interrupted") % {
                "tools": format_name_list(self.open_tools)
            }
        return describe_running_tools(self.open_tools)

    @property
    def limit_reached_text(self) -> str:
        return describe_limit_reached(self.run, self.limits)

    @property
    def duration_seconds(self) -> float | None:
        """Seconds from the first claim to the end."""
        if self.run.started_at is None or self.run.ended_at is None:
            return None
        return (self.run.ended_at - self.run.started_at).total_seconds()

    @property
    def duration_text(self) -> str:
        """How long it took, with the waiting in it if there was any to speak of."""
        whole, waited = self.duration_seconds, self.timeline.waited
        if not whole:
            return ""
        if waited < MIN_NAMED_WAIT_SECONDS:
            return _("%(duration)s total") % {"duration": duration(whole)}
        return _("%(duration)s total, %(waited)s of it waiting") % {
            "duration": duration(whole),
            "waited": duration(min(waited, whole)),
        }

    @property
    def queued_seconds(self) -> float | None:
        """Seconds before a worker first took it."""
        if self.run.started_at is None:
            return None
        waited = (self.run.started_at - self.run.created_at).total_seconds()
        return max(waited, 0.0)

    @property
    def cancel_seconds(self) -> float | None:
        """Seconds from the request to stop to the end."""
        asked, ended = self.run.cancel_requested_at, self.run.ended_at
        return (ended - asked).total_seconds() if asked and ended else None

    @property
    def scale(self) -> TimeScale:
        return TimeScale.fitting(self.seconds)

    @property
    def ticks(self) -> list[float]:
        """Seconds at the lines of the time axis; none before anything ran."""
        return self.scale.ticks if self.seconds else []

    @property
    def cut_note(self) -> str:
        """How the axis shows long waits; empty if there was none."""
        if not self.timeline.cuts:
            return ""
        return _("Waits longer than %(limit)s are drawn as %(shown)s.") % {
            "limit": duration(LONGEST_WAIT),
            "shown": duration(SHOWN_WAIT),
        }

    @property
    def seconds(self) -> float:
        """Seconds on the time scale: up to now, or to the last heartbeat."""
        if self.was_canceled_while_working:
            return self.timeline.end(self.run.ended_at)
        if self.is_lost:
            return self.timeline.end(self.last_heartbeat)
        return self.timeline.end(self.now if self.is_working else None)

    @property
    def unrecorded_seconds(self) -> float:
        """Seconds of work without a record: in progress, or interrupted."""
        is_counted = (
            self.run.status == Run.Status.RUNNING or self.was_canceled_while_working
        )
        return max(self.seconds - self.timeline.end(), 0.0) if is_counted else 0.0

    @property
    def working_seconds(self) -> float:
        """Seconds of work, without waiting and without called agents."""
        busy = self.timeline.busy
        return busy.get("model", 0.0) + busy.get("tool", 0.0) + self.unrecorded_seconds

    @property
    def busy_seconds(self) -> float:
        """Seconds in which the model, a tool or a called agent worked."""
        return sum(self.timeline.busy.values()) + self.unrecorded_seconds

    @cached_property
    def was_canceled_while_working(self) -> bool:
        """Whether it was canceled while working, not while awaiting a person."""
        run = self.run
        if run.status != Run.Status.CANCELED or run.started_at is None:
            return False
        asked = Decision.objects.filter(step__run=run)
        return not asked.filter(answer=Decision.Answer.WITHDRAWN).exists()

    @property
    def parent(self) -> ParentStep | None:
        """Where this run was called, if another run did."""
        step = self.run.parent_step
        if step is None:
            return None
        return ParentStep(step.run_id, step.index + step.model_call.number + 2)

    @property
    def shares(self) -> list[TimeShare]:
        """How long the model, the tools and waiting took, up to now."""
        busy = dict(self.timeline.busy)
        if self.run.status == Run.Status.RUNNING:
            kind = "tool" if self.open_tools else "model"
            busy[kind] = busy.get(kind, 0.0) + self.unrecorded_seconds
        model, tool = busy.get("model", 0.0), busy.get("tool", 0.0)
        spans = [
            ("model", _("Model"), model),
            ("tool", _("Tools"), tool),
            ("run", _("Agents"), busy.get("run", 0.0)),
            ("wait", _("Waiting"), self.timeline.waited),
        ]
        return build_time_shares(spans)

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.run.input_tokens + self.run.output_tokens

    @property
    def replayed_run(self) -> int | None:
        mode = self.run.spec.body.get("tool_mode") or {}
        recording: int | None = mode.get("recording")
        return recording

    @property
    def agent_url(self) -> str:
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
        seconds = self.working_seconds
        ticks = seconds if self.is_working else None
        has_price = bool(run.spec.body.get("prices")) or run.cost > 0
        return [
            Meter(
                _("Working time"),
                duration(seconds) if seconds else _("%(value)s s") % {"value": 0},
                duration(limits.max_execution_time),
                get_percent_left(seconds, limits.max_execution_time),
                ticks,
                is_over=run.is_over,
            ),
            Meter(
                _("Rounds"),
                number(run.rounds),
                number(limits.max_iterations),
                get_percent_left(run.rounds, limits.max_iterations),
                is_over=run.is_over,
            ),
            Meter(
                _("Tokens"),
                number(self.tokens),
                number(budget.tokens or None),
                get_percent_left(self.tokens, budget.tokens),
                is_over=run.is_over,
            ),
            Meter(
                _("Cost"),
                money(float(run.cost)) if has_price else _("no price"),
                money(budget.cost) if budget.cost else "",
                get_percent_left(float(run.cost), budget.cost),
                is_over=run.is_over,
            ),
        ]


def load_run_state(run: Run, timeline: Timeline) -> RunState:
    """Return the state of one run, all of it read now."""
    return load_run_states([(run, timeline)])[0]


def load_run_states(runs: Sequence[tuple[Run, Timeline]]) -> list[RunState]:
    """Return the states of runs, read with as many queries as for one."""
    ids = [run.pk for run, _ in runs]
    queued = [run.pk for run, _ in runs if run.status == Run.Status.QUEUED]
    resumes: dict[int, list[Resume]] = {}
    for resume in Resume.objects.filter(run__in=ids):
        resumes.setdefault(resume.run_id, []).append(resume)
    doing, alive = load_open_tools(ids), has_live_worker()
    places = load_queue_places(queued) if queued else {}
    now = read_time_for_runs(run for run, _ in runs)
    return [
        RunState(
            run=run,
            timeline=timeline,
            limits=apply_resume_limits(run, resumes.get(run.pk, ())),
            now=now,
            open_tools=doing.get(run.pk, []),
            place=places.get(run.pk),
            has_worker=alive,
            changed_tools=find_changed_tools(run) if run.is_over else [],
        )
        for run, timeline in runs
    ]


def describe_limit_reached(run: Run, limits: ExecutorOptions) -> str:
    """Return which limit ended the run, with the number of rounds if it is that."""
    most = limits.max_iterations
    if run.stop_reason == Run.StopReason.ITERATIONS and most:
        return ngettext(
            "Round limit reached (%(count)s round)",
            "Round limit reached (%(count)s rounds)",
            most,
        ) % {"count": number(most)}
    return str(LIMIT_DESCRIPTIONS.get(run.stop_reason, _("Limit reached")))


def load_open_tools(run_ids: Iterable[int]) -> dict[int, list[str]]:
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


def load_queue_places(run_ids: Iterable[int]) -> dict[int, int]:
    """Return the queue positions of runs, from 1; none far down a long queue."""
    wanted = set(run_ids)
    queue = Run.objects.filter(status=Run.Status.QUEUED).order_by("queued_at", "pk")
    ids = queue.values_list("pk", flat=True)[:MAX_QUEUE_PLACES]
    return {pk: place for place, pk in enumerate(ids, 1) if pk in wanted}


def _format_wait(seconds: float) -> str:
    if seconds < LONG_WAIT_SECONDS:
        return _("%(value)s s") % {"value": f"{seconds:.0f}"}
    return duration(seconds)


def describe_running_tools(tools: list[str]) -> str:
    text = ngettext("%(tools)s is running", "%(tools)s are running", len(tools))
    return text % {"tools": format_name_list(tools)}


def format_name_list(tools: list[str]) -> str:
    """Return the names of one or two tools, or of two with the number of the others."""
    if len(tools) == 1:
        return tools[0]
    more = len(tools) - 2
    values = {"first": tools[0], "second": tools[1], "count": more}
    if not more:
        return _("%(first)s and %(second)s") % values
    return (
        ngettext(
            "%(first)s, %(second)s and %(count)s more",
            "%(first)s, %(second)s and %(count)s more",
            more,
        )
        % values
    )


def get_percent_left(used: float, limit: float | None) -> int | None:
    """Return the percentage of a limit that is left; None without a limit.

    It is 100 only if nothing was used.
    """
    if not limit:
        return None
    return max(0, min(99 if used else 100, round((1 - used / limit) * 100)))


def run_state_context(state: RunState) -> dict[str, Any]:
    return {"state": state, "run": state.run}
