"""A run as a turn of a conversation: its steps in short, and its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.models import AgentStep, Run
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.store.partial_texts import load_partial_texts
from runs.ui.format import dollars, duration, number
from runs.ui.markdown import render_json, render_markdown
from runs.ui.run_list_rows import describe_lost_run
from runs.ui.summaries import summarize_input, summarize_result
from runs.ui.time_scale import Timeline
from runs.views.run.rows import get_step_row_number, query_agent_steps
from runs.views.run.state import (
    MIN_NAMED_WAIT_SECONDS,
    RunState,
    load_run_states,
)
from runs.whole_number import parse_whole_number
from tools.accounts.person_name import get_person_name

MAX_STEPS = 30
"""Of a turn; the run page shows all steps."""


@dataclass(frozen=True)
class TurnStep:
    """One tool call in a line."""

    number: int
    """Its row on the run's page."""
    tool: str
    words: str
    seconds: float | None
    status: str
    """A run's status with the same shape."""


@dataclass(frozen=True)
class RunTurn:
    """What a turn shows next to its run."""

    state: RunState
    steps: list[TurnStep]
    more: int = 0
    """Earlier steps that are not shown."""
    html: SafeString | None = None
    """The answer as Markdown, or None."""
    json: SafeString | None = None
    """The answer if it is not text."""
    waited: float = 0.0
    """Seconds in which it waited for people."""
    kept: SafeString | None = None
    """What the model had written of an answer that was never complete."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.state.run.input_tokens + self.state.run.output_tokens

    @property
    def usage(self) -> str:
        facts = []
        if self.tokens:
            facts.append(
                ngettext("%(count)s token", "%(count)s tokens", self.tokens)
                % {"count": number(self.tokens)}
            )
        return " · ".join(filter(None, [*facts, dollars(self.state.run.cost)]))

    @property
    def words(self) -> str:
        """What the run does now, or how it ended, in one line."""
        run, state = self.state.run, self.state
        if run.cancel_requested_at and not run.is_over:
            return _("Stopping")
        match run.status:
            case Run.Status.QUEUED:
                return self._queued()
            case Run.Status.RUNNING:
                return self._describe_work()
            case Run.Status.LIMIT_REACHED:
                return state.limit_reached_text
            case Run.Status.FAILED:
                return _("Failed after %(duration)s") % {"duration": self._duration}
            case Run.Status.CANCELED if run.started_at is None:
                return _("Stopped before the start")
            case Run.Status.CANCELED:
                return _("Stopped after %(duration)s") % {"duration": self._duration}
            case Run.Status.SUCCEEDED:
                return self._describe_success()
            case Run.Status.WAITING:
                return self._describe_wait()
            case _:
                return str(WAITING_LABELS[run.status])

    @property
    def short_status(self) -> str:
        """The same for people who only chat: no workers, rounds or tokens."""
        run = self.state.run
        if run.cancel_requested_at and not run.is_over:
            return self.words
        match run.status:
            case Run.Status.QUEUED:
                return _("Waiting to start")
            case Run.Status.RUNNING:
                return self.state.activity
            case Run.Status.LIMIT_REACHED:
                return str(Run.Status.LIMIT_REACHED.label)
            case Run.Status.SUCCEEDED:
                return _("Answered in %(duration)s") % {"duration": self._duration}
            case _:
                return self.words

    @property
    def stopped_words(self) -> str:
        """Who stopped the answer: turns are shown to those whose runs they are."""
        run = self.state.run
        if run.canceled_by_id == run.owner_id:
            return _("You stopped this answer")
        if (by := run.canceled_by) is None:
            return _("This answer was stopped")
        person = get_person_name(by)
        return _("%(person)s stopped this answer") % {"person": person}

    def _queued(self) -> str:
        if not self.state.has_worker:
            return _("No worker is running. The run waits until one starts")
        if self.state.place:
            return _("Queued at position %(place)d") % {"place": self.state.place}
        return _("Queued")

    def _describe_work(self) -> str:
        state = self.state
        if state.is_lost:
            return describe_lost_run(has_worker=state.has_worker)
        values = {"number": state.round, "activity": state.activity}
        return _("Round %(number)d: %(activity)s") % values

    def _describe_wait(self) -> str:
        state = self.state
        if state.wait is None:
            return state.limit_wait_text or str(WAITING_LABELS["waiting"])
        # Without a time: nothing renders a waiting turn again until it resumes.
        text = _("Waiting for provider %(provider)s")
        return text % {"provider": state.wait.name}

    def _describe_success(self) -> str:
        values = {
            "work": describe_work_done(self.state.run),
            "duration": self._duration,
            "waited": keep_together(duration(self.waited)),
        }
        if self.waited < MIN_NAMED_WAIT_SECONDS:
            return _("%(work)s in %(duration)s") % values
        return _("%(work)s in %(duration)s, plus %(waited)s waiting") % values

    @property
    def _duration(self) -> str:
        return keep_together(duration(get_work_seconds(self.state.run, self.waited)))


def keep_together(text: str) -> str:
    """Return `text` as it stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


WAITING_LABELS = {
    "awaiting_approval": gettext_lazy("Awaiting approval"),
    "awaiting_decision": gettext_lazy(
        "Awaiting decision: the outcome of a call is unknown"
    ),
    "waiting": gettext_lazy("Waiting"),
}

STEP_SHAPES = {
    "planned": "queued",
    "started": "running",
    "awaiting_approval": "awaiting_approval",
    "unknown": "awaiting_decision",
    "succeeded": "succeeded",
    "failed": "failed",
    "rejected": "canceled",
    "skipped": "canceled",
    "canceled": "canceled",
}


def build_run_turn(run: Run) -> RunTurn:
    return build_run_turns([run])[0]


def build_run_turns(runs: Sequence[Run]) -> list[RunTurn]:
    """Return runs as turns, with as many queries as for one."""
    newest = query_agent_steps([run.pk for run in runs]).filter(
        index__gte=F("run__next_index") - MAX_STEPS
    )
    steps: dict[int, list[TurnStep]] = {run.pk: [] for run in runs}
    for step in newest.order_by("run_id", "index"):
        steps[step.run_id].append(build_turn_step(step))
    states = load_run_states([(run, Timeline(run.started_at)) for run in runs])
    kept = load_partial_texts(runs)
    waits = load_human_waits([run.pk for run in runs])
    return [
        RunTurn(
            state=state,
            steps=steps[state.run.pk],
            more=max(0, state.run.next_index - len(steps[state.run.pk])),
            waited=waits.get(state.run.pk, 0.0),
            kept=render_markdown(kept[state.run.pk]) if state.run.pk in kept else None,
            **render_turn_answer(state.run.answer),
        )
        for state in states
    ]


def render_turn_answer(output: Any) -> dict[str, SafeString]:
    """Return the answer as `html` or `json`; empty without an answer."""
    if isinstance(output, str):
        return {"html": render_markdown(output)} if output.strip() else {}
    return {} if output is None else {"json": render_json(output)}


def build_turn_step(step: AgentStep) -> TurnStep:
    is_error = step.tool == "_Exception"
    result = summarize_result(step.shown)  # type: ignore[attr-defined]  # annotated by `steps_of`
    note = _("Unreadable reply") if is_error else ""
    asked = "" if is_error else summarize_input(step.tool_input)
    return TurnStep(
        number=get_step_row_number(step),
        tool="" if is_error else step.tool,
        words=" → ".join(filter(None, [note, asked, result])),
        seconds=step.duration,
        status=STEP_SHAPES.get(step.status, "queued"),
    )


def describe_work_done(run: Run) -> str:
    rounds, calls = run.rounds, run.next_index
    parts = [
        ngettext("%(count)d round", "%(count)d rounds", rounds) % {"count": rounds}
    ]
    if calls:
        parts.append(
            ngettext("%(count)d tool call", "%(count)d tool calls", calls)
            % {"count": calls}
        )
    return ", ".join(parts)


def build_stream_key(runs: list[Run]) -> str:
    """Return the key of the stream of unfinished runs; empty without any."""
    return "-".join(str(run.pk) for run in runs if not run.is_over)


def load_runs_by_key(key: str, rows: "QuerySet[Run]", *, most: int) -> list[Run]:
    """Return the runs that a key like `12-13` names, `most` at most, in its order."""
    wanted = [parse_whole_number(one) for one in key.split("-")[:most]]
    found = rows.in_bulk([pk for pk in wanted if pk is not None])
    return [found[pk] for pk in dict.fromkeys(wanted) if pk in found]
