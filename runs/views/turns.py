"""A run as a turn of a talk: what it did in a few lines, and its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.utils.safestring import SafeString

from runs.models import AgentStep, Run
from runs.templatetags.look import duration
from runs.views.markdown import render_json, render_markdown
from runs.views.plain_words import words_of_input, words_of_result
from runs.views.run_rows import number_of_step, steps_of
from runs.views.run_state import RunState, states_of
from runs.views.timeline import Timeline
from runs.whole_number import whole_number

SHOWN = 30
"""Steps in a turn; the run's page has all."""


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
class Turn:
    """What a turn shows beside its run."""

    state: RunState
    steps: list[TurnStep]
    more: int = 0
    """Earlier steps that are not shown."""
    html: SafeString | None = None
    """The answer as Markdown, or None."""
    json: SafeString | None = None
    """The answer where it is no text."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.state.run.input_tokens + self.state.run.output_tokens

    @property
    def words(self) -> str:
        """How it went, or what it does now, in one line."""
        run, state = self.state.run, self.state
        if run.cancel_requested_at and not run.is_over:
            return "Stopping"
        match run.status:
            case Run.Status.QUEUED:
                return self._queued()
            case Run.Status.RUNNING:
                return f"Round {state.round}: {state.activity}"
            case Run.Status.STOPPED:
                return f"Stopped: reached {state.stop_words}"
            case Run.Status.FAILED:
                return f"Failed{self._after()}"
            case Run.Status.CANCELLED:
                return "Cancelled"
            case Run.Status.SUCCEEDED:
                return f"{did(run)}{self._after(' in ')}"
            case _:
                return WAITS[run.status]

    def _queued(self) -> str:
        if not self.state.has_worker:
            return "No worker is running. It waits in the database until one starts"
        place = f", place {self.state.place}" if self.state.place else ""
        return f"In the queue{place}"

    def _after(self, word: str = " after ") -> str:
        took = self.state.took
        return word + duration(took).replace(" ", "\N{NO-BREAK SPACE}")


WAITS = {
    "awaiting_approval": "A call needs a yes",
    "awaiting_decision": "Nobody knows whether a call happened",
    "waiting": "Waits",
}

SHAPES = {
    "planned": "queued",
    "started": "running",
    "awaiting_approval": "awaiting_approval",
    "unknown": "awaiting_decision",
    "succeeded": "succeeded",
    "failed": "failed",
    "rejected": "cancelled",
    "skipped": "cancelled",
    "cancelled": "cancelled",
}


def turn_of(run: Run) -> Turn:
    """Return how `run` is shown in a talk."""
    return turns_of([run])[0]


def turns_of(runs: Sequence[Run]) -> list[Turn]:
    """Return how runs are shown in a talk, read with as many queries as for one."""
    newest = steps_of([run.pk for run in runs]).filter(
        index__gte=F("run__next_index") - SHOWN
    )
    steps: dict[int, list[TurnStep]] = {run.pk: [] for run in runs}
    for step in newest.order_by("run_id", "index"):
        steps[step.run_id].append(step_of(step))
    states = states_of([(run, Timeline(run.started_at)) for run in runs])
    return [
        Turn(
            state=state,
            steps=steps[state.run.pk],
            more=max(0, state.run.next_index - len(steps[state.run.pk])),
            **answer_of(state.run.answer),
        )
        for state in states
    ]


def answer_of(output: Any) -> dict[str, SafeString]:
    """Return the answer as text or as JSON; nothing where there is none."""
    if isinstance(output, str):
        return {"html": render_markdown(output)} if output.strip() else {}
    return {} if output is None else {"json": render_json(output)}


def step_of(step: AgentStep) -> TurnStep:
    """Return the line of a call."""
    is_error = step.tool == "_Exception"
    result = words_of_result(step.shown)  # type: ignore[attr-defined]  # annotated by `steps_of`
    asked = "" if is_error else words_of_input(step.tool_input)
    return TurnStep(
        number=number_of_step(step),
        tool="" if is_error else step.tool,
        words=" → ".join(filter(None, ["Unreadable reply" * is_error, asked, result])),
        seconds=step.duration,
        status=SHAPES.get(step.status, "queued"),
    )


def did(run: Run) -> str:
    """Count what a run did."""
    rounds = f"{run.rounds} round{'' if run.rounds == 1 else 's'}"
    calls = run.next_index
    if not calls:
        return rounds
    return f"{rounds}, {calls} tool call{'' if calls == 1 else 's'}"


def live_key(runs: list[Run]) -> str:
    """Return the key of the stream of those that are not over; empty without any."""
    return "-".join(str(run.pk) for run in runs if not run.is_over)


def runs_in(key: str, rows: "QuerySet[Run]", *, most: int) -> list[Run]:
    """Return the runs that a key like `12-13` names, `most` at most, in its order."""
    wanted = [whole_number(one) for one in key.split("-")[:most]]
    found = rows.in_bulk([pk for pk in wanted if pk is not None])
    return [found[pk] for pk in dict.fromkeys(wanted) if pk in found]
