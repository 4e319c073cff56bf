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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.types import TRUNCATED
from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.ui.format import duration
from runs.ui.summaries import (
    is_answer,
    summarize_input,
    summarize_reply,
    summarize_result,
    truncate_line,
)
from runs.ui.time_scale import Timeline, format_percent

MIN_SHOWN_WAIT = 0.3
"""Seconds between a reply and its call from which the wait gets a bar."""
ROW_LABELS = {
    "model": gettext_lazy("Model call"),
    "tool": gettext_lazy("Tool call"),
    "run": gettext_lazy("Sub-agent run"),
}
CUT_OFF_CODES = ("canceled", "time_limit")
"""Error codes of attempts that ended because a person or a limit ended the run."""

TOOL_ICONS = {"awaiting_approval": "hand", "unknown": "help"}
CHILD_TAGS = {
    "queued": (gettext_lazy("queued"), ""),
    "running": (gettext_lazy("running"), "live"),
    "awaiting_approval": (gettext_lazy("awaiting approval"), "need"),
    "awaiting_decision": (gettext_lazy("awaiting decision"), "need"),
    "waiting": (gettext_lazy("waiting"), ""),
}
STEP_TAGS = {
    "planned": (gettext_lazy("planned"), ""),
    "awaiting_approval": (gettext_lazy("awaiting approval"), "need"),
    "started": (gettext_lazy("running"), "live"),
    "rejected": (gettext_lazy("rejected"), ""),
    "unknown": (gettext_lazy("unknown outcome"), "need"),
    "skipped": (gettext_lazy("skipped"), ""),
    "canceled": (gettext_lazy("canceled"), ""),
}
ANSWERED_BY_TAGS = {
    "recording": gettext_lazy("replayed"),
    "other_arguments": gettext_lazy("replayed, other arguments"),
    "held_back": gettext_lazy("held back"),
    "no_recording": gettext_lazy("not recorded"),
}
"""On calls that were not made."""
NO_HEARTBEAT_TAG = (gettext_lazy("no heartbeat"), "need")
"""On an unfinished call of a run whose worker is gone."""


class TimelineBar(NamedTuple):
    """A bar of a row on the time scale; positions in percent at scale 0."""

    tone: str
    x: str
    width: str


BAR_SVG = '<rect class="w-{}" x="{}" y="11" width="{}" height="12"/>'
WAIT_SVG = '<line class="w-wait" x1="{}" x2="{}" y1="17" y2="17"/>'
"""A dashed line: its dashes keep their size at every time scale."""


def render_bars(bars: Iterable[TimelineBar]) -> SafeString:
    """Return bars as SVG; not by a template, since a page has hundreds of rows."""
    return SafeString("".join(_render_bar(bar) for bar in bars))


def _render_bar(bar: TimelineBar) -> str:
    if bar.tone != "wait":
        return format_html(BAR_SVG, *bar)
    end = float(bar.x[:-1]) + float(bar.width[:-1])
    return format_html(WAIT_SVG, bar.x, f"{end:.3f}%")


@dataclass(frozen=True)
class RowTag:
    """A short fact beside the text of a row."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class TimelineRow:
    """One line of the list of steps."""

    number: int
    kind: str
    """model, tool, or run if the tool is another agent."""
    icon: str
    words: str
    name: str = ""
    """Of the tool, set in a monospaced font."""
    state: str = ""
    """error, failed or need."""
    tags: tuple[RowTag, ...] = ()
    bars: tuple[TimelineBar, ...] = ()
    seconds: float | None = None
    tokens: int | None = None
    output_tokens: int = 0
    """The part of `tokens` that a model wrote; 0 if that is not known."""
    cost: Decimal | float | None = None
    round: int = 0
    created_seq: int = 0
    changed_seq: int = 0
    child: int | None = None
    """The run of another agent that the call started."""
    matching_line: str = ""
    """An excerpt that matches the search, if `words` does not."""

    @property
    def drawing(self) -> SafeString:
        return render_bars(self.bars)

    @property
    def depth(self) -> int:
        """Levels of indentation: tool calls belong to the reply above."""
        return int(self.kind != "model")

    @property
    def label(self) -> str:
        """The kind of row, for screen readers."""
        return str(ROW_LABELS[self.kind])


def get_call_row_number(call: ModelCall) -> int:
    """Return the call's place among all rows, from 1."""
    return call.number + call.at_index + 1


def get_step_row_number(step: AgentStep) -> int:
    """Return the step's place; `step.call_number` is the number of its call."""
    return step.index + step.call_number + 2  # type: ignore[attr-defined, no-any-return]  # annotated by `query_agent_steps`


def get_next_row_number(run: Run) -> int:
    return run.next_number + run.next_index + 1


def query_model_calls(run_ids: Iterable[int]) -> QuerySet[ModelCall]:
    """Return model calls with their row numbers."""
    return ModelCall.objects.filter(run_id__in=run_ids).annotate(
        row=F("number") + F("at_index") + 1
    )


def query_agent_steps(run_ids: Iterable[int]) -> QuerySet[AgentStep]:
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


def load_failed_attempts(
    run: Run, calls: list[ModelCall]
) -> dict[int, list[ModelAttempt]]:
    """Return the failed attempts of these calls, by the call's number."""
    found: dict[int, list[ModelAttempt]] = {}
    if calls:
        lowest = min(call.number for call in calls)
        for attempt in ModelAttempt.objects.filter(run=run, number__gte=lowest):
            found.setdefault(attempt.number, []).append(attempt)
    return found


def build_call_row(
    call: ModelCall,
    timeline: Timeline,
    failed: list[ModelAttempt],
    *,
    is_old: bool = False,
) -> TimelineRow:
    """Return the row of a model call; `is_old` if a resume has replaced it."""
    words = summarize_reply(call.reply, purpose=call.purpose)
    tags = []
    if failed:
        tags.append(RowTag(format_attempt_count(failed), "bad"))
    if is_old:
        tags.append(RowTag(_("superseded")))
    if call.reply.get("finish_reason") == TRUNCATED:
        tags.append(RowTag(_("cut off"), "bad"))
    tags += list_reuse_tags(call)
    return TimelineRow(
        number=get_call_row_number(call),
        kind="model",
        icon="answer"
        if call.purpose == ModelCall.Purpose.PLAN and is_answer(call.reply)
        else "model",
        words=words,
        tags=tuple(tags),
        bars=(
            *build_call_bars(call, timeline, failed),
            *build_attempt_bars(failed, timeline),
        ),
        seconds=None if call.is_copied else call.elapsed,
        tokens=None
        if call.is_copied
        else call.input_tokens + call.output_tokens or None,
        output_tokens=0 if call.is_copied else call.output_tokens,
        cost=call.cost or None,
        round=call.round,
        created_seq=call.created_seq,
        changed_seq=call.changed_seq,
    )


def list_reuse_tags(row: ModelCall | AgentStep) -> list[RowTag]:
    """Return whether a row was reused by a fork, or edited."""
    if row.is_edited:
        return [RowTag(_("edited"), "live")]
    return [RowTag(_("reused"))] if row.is_copied else []


def format_attempt_count(failed: list[ModelAttempt]) -> str:
    text = ngettext(
        "%(count)s failed attempt", "%(count)s failed attempts", len(failed)
    )
    return text % {"count": len(failed)}


def get_own_seconds(call: ModelCall, failed: list[ModelAttempt]) -> float:
    """Return how long the successful attempt took, without those before it."""
    before = sum(attempt.elapsed + (attempt.retry_in or 0) for attempt in failed)
    return (
        max(call.elapsed - before, call.first_token or 0.0) if before else call.elapsed
    )


def build_call_bars(
    call: ModelCall, timeline: Timeline, failed: list[ModelAttempt]
) -> list[TimelineBar]:
    """Return a pale bar until the first token and a full one until the end."""
    if call.is_copied:
        return []
    start, took = timeline.at(call.started_at), get_own_seconds(call, failed)
    first = min(call.first_token or 0.0, took)
    bars = [
        TimelineBar(
            "model", format_percent(start + first), format_percent(took - first)
        )
    ]
    if first:
        bars.insert(
            0, TimelineBar("first", format_percent(start), format_percent(first))
        )
    return bars


def build_attempt_bars(
    failed: list[ModelAttempt], timeline: Timeline
) -> list[TimelineBar]:
    """Return each failed attempt, and the wait after it."""
    bars = []
    for attempt in failed:
        start = timeline.at(attempt.started_at)
        bars.append(
            TimelineBar("bad", format_percent(start), format_percent(attempt.elapsed))
        )
        if attempt.retry_in:
            end = start + attempt.elapsed
            bars.append(
                TimelineBar(
                    "wait", format_percent(end), format_percent(attempt.retry_in)
                )
            )
    return bars


def build_failed_row(run: Run, timeline: Timeline) -> TimelineRow | None:
    """Return the row of a model call without a reply; None if there is none.

    The row exists from the end of the run on.
    """
    if not run.is_over:
        return None
    failed = list(ModelAttempt.objects.filter(run=run, number=run.next_number))
    if not failed:
        return None
    if failed[-1].code in CUT_OFF_CODES:
        return build_cut_off_row(run, failed, timeline)
    return TimelineRow(
        number=get_next_row_number(run),
        kind="model",
        icon="alert",
        words=truncate_line(failed[-1].message),
        state="failed",
        tags=(RowTag(format_attempt_count(failed), "bad"),),
        bars=tuple(build_attempt_bars(failed, timeline)),
        seconds=sum(attempt.elapsed + (attempt.retry_in or 0) for attempt in failed),
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def build_cut_off_row(
    run: Run, attempts: list[ModelAttempt], timeline: Timeline
) -> TimelineRow:
    *failed, last = attempts
    start = timeline.at(last.started_at)
    bar = TimelineBar("cut", format_percent(start), format_percent(last.elapsed))
    tags = [RowTag(_("interrupted"))]
    if failed:
        tags.append(RowTag(format_attempt_count(failed), "bad"))
    return TimelineRow(
        number=get_next_row_number(run),
        kind="model",
        icon="stop",
        words=_("Stopped after %(duration)s") % {"duration": duration(last.elapsed)},
        tags=tuple(tags),
        bars=(*build_attempt_bars(failed, timeline), bar),
        seconds=sum(one.elapsed + (one.retry_in or 0) for one in attempts),
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def build_step_row(
    step: AgentStep, timeline: Timeline, *, is_lost: bool = False
) -> TimelineRow:
    """Return the row of a tool call, or of a reply that could not be parsed.

    `is_lost` if the worker of a started call has no heartbeat.
    """
    is_error = step.tool == "_Exception"
    child: int | None = step.child_pk  # type: ignore[attr-defined]  # annotated by `query_agent_steps`
    found = STEP_TAGS.get(step.status)
    if child and step.status == "started":
        found = CHILD_TAGS.get(step.child_status)  # type: ignore[attr-defined]  # likewise
    is_lost = is_lost and found is not None and found[1] == "live"
    if is_lost:
        found = NO_HEARTBEAT_TAG
    tag, tone = (str(found[0]), found[1]) if found else ("", "")
    result = summarize_result(step.shown)  # type: ignore[attr-defined]  # annotated by `query_agent_steps`
    result = result or get_current_progress(step)
    asked = "" if is_error else summarize_input(step.tool_input)
    if child:
        text = _("run %(run)s: %(input)s") if asked else _("run %(run)s")
        asked = text % {"run": child, "input": asked}
    words = " → ".join(part for part in (asked, result) if part)
    state = "error" if step.status == "failed" else ""
    if tone == "need" and not is_lost:
        state = "need"
    plain = "child" if child else TOOL_ICONS.get(step.status, "tool")
    icon = "alert" if state == "error" else plain
    used = {} if step.is_copied else step.usage or {}
    tags = [RowTag(tag, tone)] if tag else []
    if step.attempts > 1:
        text = ngettext("%(count)s attempt", "%(count)s attempts", step.attempts)
        tags.append(RowTag(text % {"count": step.attempts}, "bad"))
    tags += list_reuse_tags(step)
    if step.answered_by:
        tags.append(RowTag(str(ANSWERED_BY_TAGS[step.answered_by])))
    return TimelineRow(
        number=get_step_row_number(step),
        kind="run" if child else "tool",
        icon=icon,
        name="" if is_error else step.tool,
        words=_("The reply could not be parsed: %(reason)s") % {"reason": words}
        if is_error
        else words,
        state=state,
        tags=tuple(tags),
        bars=tuple(build_step_bars(step, timeline, is_lost=is_lost)),
        seconds=None if step.is_copied or step.answered_by else step.duration,
        tokens=used.get("tokens"),
        cost=used.get("cost"),
        round=step.round,
        created_seq=step.created_seq,
        changed_seq=step.changed_seq,
        child=child,
    )


def get_current_progress(step: AgentStep) -> str:
    is_running = step.status == AgentStep.Status.STARTED
    return summarize_result(step.progress) if is_running else ""


def build_step_bars(
    step: AgentStep, timeline: Timeline, *, is_lost: bool
) -> list[TimelineBar]:
    """Return a bar for the call, after one for its wait."""
    if step.started_at is None or step.is_copied or step.answered_by:
        return []
    start = timeline.at(step.started_at)
    asked = get_call_end(step)
    waited = start - timeline.at(asked)
    wait = []
    if waited > MIN_SHOWN_WAIT:
        wait = [
            TimelineBar(
                "wait", format_percent(timeline.at(asked)), format_percent(waited)
            )
        ]
    done = "run" if step.child_pk else "tool"  # type: ignore[attr-defined]  # annotated by `query_agent_steps`
    tone = "bad" if step.status in ("failed", "unknown") else done
    seconds = step.duration
    if seconds is None:
        tone, seconds = "cut" if is_lost else "live", 0.0
    return [*wait, TimelineBar(tone, format_percent(start), format_percent(seconds))]


def get_call_end(step: AgentStep) -> datetime:
    """Return when the reply that requested the step was complete."""
    began: datetime = step.call_began  # type: ignore[attr-defined]  # annotated by `query_agent_steps`
    took: float = step.call_took  # type: ignore[attr-defined]  # likewise
    return began + timedelta(seconds=took)
