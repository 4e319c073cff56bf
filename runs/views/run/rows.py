"""The rows of a run: model calls and tool calls in order, one line each.

A row's number follows from its own record alone: a call comes after the calls and
steps before it, a step after its call. So it never changes, and pages, addresses and
live updates agree on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import F, QuerySet
from django.db.models.functions import Substr
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.templatetags.look import duration
from runs.views.plain_words import (
    cut,
    words_of_input,
    words_of_reply,
    words_of_result,
)
from runs.views.timeline import Timeline, percent

SHORTEST_WAIT = 0.3
"""Seconds between a reply and a call of it that are worth a bar."""
LABELS = {"model": "Model call", "tool": "Tool call", "run": "Child run"}
CUT_OFF = "cancelled"
"""Code of an attempt that a person ended."""

TOOL_ICONS = {"awaiting_approval": "hand", "unknown": "help"}
CHILD_TAGS = {
    "queued": ("queued", ""),
    "running": ("running", "live"),
    "awaiting_approval": ("needs a yes", "need"),
    "awaiting_decision": ("needs a decision", "need"),
    "waiting": ("waits", ""),
}
STEP_TAGS = {
    "planned": ("planned", ""),
    "awaiting_approval": ("needs a yes", "need"),
    "started": ("running", "live"),
    "rejected": ("rejected", ""),
    "unknown": ("outcome unknown", "need"),
    "skipped": ("skipped", ""),
    "cancelled": ("cancelled", ""),
}
NO_SIGN = ("no sign of life", "need")
"""On a call that a lost run has begun."""


class Bar(NamedTuple):
    """A piece of a row's line on the time scale; places in percent at scale 0."""

    tone: str
    x: str
    width: str


RECT = '<rect class="w-{}" x="{}" y="11" width="{}" height="12"/>'
LINE = '<line class="w-wait" x1="{}" x2="{}" y1="17" y2="17"/>'
"""A wait is a dashed line, for dashes keep their size at every time scale."""


def drawn(bars: Iterable[Bar]) -> SafeString:
    """Return bars as shapes; made here, for a page shows hundreds of rows."""
    return SafeString("".join(_shape(bar) for bar in bars))


def _shape(bar: Bar) -> str:
    if bar.tone != "wait":
        return format_html(RECT, *bar)
    end = float(bar.x[:-1]) + float(bar.width[:-1])
    return format_html(LINE, bar.x, f"{end:.3f}%")


@dataclass(frozen=True)
class Tag:
    """A fact beside the words."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the list of steps."""

    number: int
    kind: str
    """model, tool, or run where the tool is another agent."""
    icon: str
    words: str
    name: str = ""
    """The tool's, set in mono."""
    state: str = ""
    """error, failed or need."""
    tags: tuple[Tag, ...] = ()
    bars: tuple[Bar, ...] = ()
    seconds: float | None = None
    tokens: int | None = None
    cost: Decimal | float | None = None
    round: int = 0
    created_seq: int = 0
    changed_seq: int = 0
    child: int | None = None
    """The run of another agent that it started."""
    hit: str = ""
    """A line of its texts that holds what is searched for, where `words` does not."""

    @property
    def drawing(self) -> SafeString:
        """The bars as shapes."""
        return drawn(self.bars)

    @property
    def depth(self) -> int:
        """How far it is indented: calls of tools belong to the reply above."""
        return int(self.kind != "model")

    @property
    def label(self) -> str:
        """What it is, for screen readers."""
        return LABELS[self.kind]


def number_of_call(call: ModelCall) -> int:
    """Return the call's place among all rows, from 1."""
    return call.number + call.at_index + 1


def number_of_step(step: AgentStep) -> int:
    """Return the step's place; `step.call_number` is the number of its call."""
    return step.index + step.call_number + 2  # type: ignore[attr-defined, no-any-return]  # annotated by `steps_of`


def next_number(run: Run) -> int:
    """Return the number that the next row will have."""
    return run.next_number + run.next_index + 1


def calls_of(run_ids: Iterable[int]) -> QuerySet[ModelCall]:
    """Return model calls with their row numbers."""
    return ModelCall.objects.filter(run_id__in=run_ids).annotate(
        row=F("number") + F("at_index") + 1
    )


def steps_of(run_ids: Iterable[int]) -> QuerySet[AgentStep]:
    """Return steps with their row numbers and the beginning of what they observed."""
    return (
        AgentStep.objects.filter(run_id__in=run_ids)
        .defer("observation", "value", "log")
        .annotate(
            call_number=F("model_call__number"),
            row=F("index") + F("model_call__number") + 2,
            call_began=F("model_call__started_at"),
            call_took=F("model_call__elapsed"),
            shown=Substr("observation", 1, 240),
            child_pk=F("child__pk"),
            child_status=F("child__status"),
        )
    )


def attempts_of(run: Run, calls: list[ModelCall]) -> dict[int, list[ModelAttempt]]:
    """Return the failed attempts of these calls, by the call's number."""
    found: dict[int, list[ModelAttempt]] = {}
    if calls:
        lowest = min(call.number for call in calls)
        for attempt in ModelAttempt.objects.filter(run=run, number__gte=lowest):
            found.setdefault(attempt.number, []).append(attempt)
    return found


def call_row(
    call: ModelCall,
    timeline: Timeline,
    failed: list[ModelAttempt],
    *,
    is_old: bool = False,
) -> Row:
    """Return the line of a model call; `is_old`: a resume has set it aside."""
    words = words_of_reply(call.reply, purpose=call.purpose)
    tags = []
    if failed:
        tags.append(Tag(attempts_words(failed), "bad"))
    if is_old:
        tags.append(Tag("set aside"))
    tags += reuse_tags(call)
    return Row(
        number=number_of_call(call),
        kind="model",
        icon="answer" if words == "Answers" else "model",
        words=words,
        tags=tuple(tags),
        bars=(*call_bars(call, timeline, failed), *attempt_bars(failed, timeline)),
        seconds=None if call.is_copied else call.elapsed,
        tokens=None
        if call.is_copied
        else call.input_tokens + call.output_tokens or None,
        cost=call.cost or None,
        round=call.round,
        created_seq=call.created_seq,
        changed_seq=call.changed_seq,
    )


def reuse_tags(row: ModelCall | AgentStep) -> list[Tag]:
    """Say that a fork has reused a row, or that a person wrote it."""
    if row.is_edited:
        return [Tag("edited", "live")]
    return [Tag("reused")] if row.is_copied else []


def attempts_words(failed: list[ModelAttempt]) -> str:
    """Say how many attempts failed."""
    return "1 failed attempt" if len(failed) == 1 else f"{len(failed)} failed attempts"


def own_seconds(call: ModelCall, failed: list[ModelAttempt]) -> float:
    """Return how long the attempt took that got the reply, without those before it."""
    before = sum(attempt.elapsed + (attempt.retry_in or 0) for attempt in failed)
    return (
        max(call.elapsed - before, call.first_token or 0.0) if before else call.elapsed
    )


def call_bars(
    call: ModelCall, timeline: Timeline, failed: list[ModelAttempt]
) -> list[Bar]:
    """Return pale until the first text, then full until the end."""
    if call.is_copied:
        return []
    start, took = timeline.at(call.started_at), own_seconds(call, failed)
    first = min(call.first_token or 0.0, took)
    bars = [Bar("model", percent(start + first), percent(took - first))]
    if first:
        bars.insert(0, Bar("first", percent(start), percent(first)))
    return bars


def attempt_bars(failed: list[ModelAttempt], timeline: Timeline) -> list[Bar]:
    """Return each failed attempt, and the wait after it."""
    bars = []
    for attempt in failed:
        start = timeline.at(attempt.started_at)
        bars.append(Bar("bad", percent(start), percent(attempt.elapsed)))
        if attempt.retry_in:
            end = start + attempt.elapsed
            bars.append(Bar("wait", percent(end), percent(attempt.retry_in)))
    return bars


def failed_row(run: Run, timeline: Timeline) -> Row | None:
    """Return the line of a model call that never got a reply; None where all did.

    It comes into being with the run's end, for those too who saw the attempts live.
    """
    if not run.is_over:
        return None
    failed = list(ModelAttempt.objects.filter(run=run, number=run.next_number))
    if not failed:
        return None
    if failed[-1].code == CUT_OFF:
        return cut_off_row(run, failed, timeline)
    return Row(
        number=next_number(run),
        kind="model",
        icon="alert",
        words=cut(failed[-1].message),
        state="failed",
        tags=(Tag(attempts_words(failed), "bad"),),
        bars=tuple(attempt_bars(failed, timeline)),
        seconds=sum(attempt.elapsed + (attempt.retry_in or 0) for attempt in failed),
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def cut_off_row(run: Run, attempts: list[ModelAttempt], timeline: Timeline) -> Row:
    """Return the line of a model call during which a person stopped the run."""
    *failed, last = attempts
    start = timeline.at(last.started_at)
    bar = Bar("cut", percent(start), percent(last.elapsed))
    tags = [Tag("cut off")]
    if failed:
        tags.append(Tag(attempts_words(failed), "bad"))
    return Row(
        number=next_number(run),
        kind="model",
        icon="stop",
        words=f"The model was asked, stopped after {duration(last.elapsed)}",
        tags=tuple(tags),
        bars=(*attempt_bars(failed, timeline), bar),
        seconds=sum(one.elapsed + (one.retry_in or 0) for one in attempts),
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def step_row(step: AgentStep, timeline: Timeline, *, is_lost: bool = False) -> Row:
    """Return the line of a tool call, or of a reply that could not be read.

    `is_lost`: nobody is known to be on a call that has begun.
    """
    is_error = step.tool == "_Exception"
    child: int | None = step.child_pk  # type: ignore[attr-defined]  # annotated by `steps_of`
    tag, tone = STEP_TAGS.get(step.status, ("", ""))
    if child and step.status == "started":
        tag, tone = CHILD_TAGS.get(step.child_status, ("", ""))  # type: ignore[attr-defined]  # likewise
    is_lost = is_lost and tone == "live"
    if is_lost:
        tag, tone = NO_SIGN
    result = words_of_result(step.shown)  # type: ignore[attr-defined]  # annotated by `steps_of`
    asked = "" if is_error else words_of_input(step.tool_input)
    if child:
        asked = f"run {child}: {asked}" if asked else f"run {child}"
    words = " → ".join(part for part in (asked, result) if part)
    state = "error" if step.status == "failed" else ""
    if tone == "need" and not is_lost:
        state = "need"
    plain = "child" if child else TOOL_ICONS.get(step.status, "tool")
    icon = "alert" if state == "error" else plain
    used = {} if step.is_copied else step.usage or {}
    tags = [Tag(tag, tone)] if tag else []
    if step.attempts > 1:
        tags.append(Tag(f"{step.attempts} attempts", "bad"))
    tags += reuse_tags(step)
    return Row(
        number=number_of_step(step),
        kind="run" if child else "tool",
        icon=icon,
        name="" if is_error else step.tool,
        words=f"The reply could not be read: {words}" if is_error else words,
        state=state,
        tags=tuple(tags),
        bars=tuple(step_bars(step, timeline, is_lost=is_lost)),
        seconds=None if step.is_copied else step.duration,
        tokens=used.get("tokens"),
        cost=used.get("cost"),
        round=step.round,
        created_seq=step.created_seq,
        changed_seq=step.changed_seq,
        child=child,
    )


def step_bars(step: AgentStep, timeline: Timeline, *, is_lost: bool) -> list[Bar]:
    """Return one bar where the call ran or runs, after the wait for its turn."""
    if step.started_at is None or step.is_copied:
        return []
    start = timeline.at(step.started_at)
    asked = call_end(step)
    waited = start - timeline.at(asked)
    wait = []
    if waited > SHORTEST_WAIT:
        wait = [Bar("wait", percent(timeline.at(asked)), percent(waited))]
    done = "run" if step.child_pk else "tool"  # type: ignore[attr-defined]  # annotated by `steps_of`
    tone = "bad" if step.status in ("failed", "unknown") else done
    seconds = step.duration
    if seconds is None:
        tone, seconds = "cut" if is_lost else "live", 0.0
    return [*wait, Bar(tone, percent(start), percent(seconds))]


def call_end(step: AgentStep) -> datetime:
    """Return when the reply was there that asked for the step; it waited since then."""
    began: datetime = step.call_began  # type: ignore[attr-defined]  # annotated by `steps_of`
    took: float = step.call_took  # type: ignore[attr-defined]  # likewise
    return began + timedelta(seconds=took)
