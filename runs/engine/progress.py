"""Where a run stands: rounds, steps, time, tokens, and whether it may go on."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from runs.engine.effects import CallModel
from runs.engine.guard import RepeatCounter
from runs.engine.types import (
    AgentSpec,
    AgentStep,
    ExecutorOptions,
    Prices,
    ResumePoint,
    RunError,
    StopReason,
    Usage,
)

MOST_PARSE_ERRORS = 3
"""So many in a row end the run (R1)."""

_INSTANT = 0.001
"""Seconds; a driver's clock may end a call a moment before its time."""


class Progress:
    """Counts what a run has used, and decides from its options whether it is over."""

    def __init__(self, spec: AgentSpec, resumes: Sequence[ResumePoint]) -> None:
        self.options = spec.executor
        self._prices = spec.prices or Prices()
        self._resumes = list(resumes)
        self.rounds = 0
        self.steps = 0
        self.parse_errors = 0
        """In a row."""
        self.calls: Counter[str] = Counter()
        """Tool calls so far, by tool."""
        self.fatal: RunError | None = None
        self._repeats = RepeatCounter()
        self._out_of_time = False
        self._elapsed = 0.0
        self._tokens = 0
        self._cost = 0.0

    def end(self) -> RunError | StopReason | None:
        """Return why the run is over, or None; a resume at this step undoes it."""
        while self._resumes and self._resumes[0].at_index <= self.steps:
            self._resume(self._resumes.pop(0))
        if self.fatal is not None:
            return self.fatal
        if self.parse_errors >= MOST_PARSE_ERRORS:
            told = (
                f"The model's reply could not be understood {MOST_PARSE_ERRORS} times."
            )
            return RunError(code="parse_errors", message=told)
        return self._limit_reached()

    def _limit_reached(self) -> StopReason | None:
        if (left := self.seconds_left()) is not None and left <= _INSTANT:
            return "time"
        most = self.options.max_iterations
        if most is not None and self.rounds >= most:
            return "iterations"
        guard = self.options.loop_guard
        if guard is not None and self._repeats.count >= guard.stop:
            return "loop"
        return self.budget_used_up()

    def budget_used_up(self) -> StopReason | None:
        """Return which budget allows no further model call."""
        budget = self.options.budget
        if budget is None:
            return None
        if budget.tokens is not None and self._tokens >= budget.tokens:
            return "tokens"
        if budget.cost is not None and self._cost >= budget.cost:
            return "cost"
        return None

    def _resume(self, resume: ResumePoint) -> None:
        self.fatal = None
        self.parse_errors = 0
        self._out_of_time = False
        self._repeats = RepeatCounter()
        merged: dict[str, Any] = {**self.options.model_dump(), **resume.limits}
        try:
            self.options = ExecutorOptions.model_validate(merged)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            told = f"The run cannot be resumed with these limits: {why}."
            self.fatal = RunError(code="limits", message=told)

    def seconds_left(self) -> float | None:
        """Return the working time left, never negative; None without a limit."""
        limit = self.options.max_execution_time
        if limit is None:
            return None
        return 0.0 if self._out_of_time else max(limit - self._elapsed, 0.0)

    def spend_time(self, seconds: float, *, all_of_it: bool = False) -> None:
        """Count working time; `all_of_it` if the run's time limit ended the call."""
        self._elapsed += seconds
        self._out_of_time = self._out_of_time or all_of_it

    def spend_tokens(self, usage: Usage) -> None:
        """Count the tokens of one model call, and what they cost."""
        self._tokens += usage.input_tokens + usage.output_tokens
        self._cost += cost_of(usage, self._prices)

    def spend_on_agents(self, *, tokens: int, cost: float) -> None:
        """Count what agents have used that were called as tools."""
        self._tokens += tokens
        self._cost += cost

    def add_round(self, steps: tuple[AgentStep, ...], *, is_parse_error: bool) -> None:
        """Count one round."""
        self.rounds += 1
        self.steps += len(steps)
        self.parse_errors = self.parse_errors + 1 if is_parse_error else 0
        self._repeats.add(steps)

    @property
    def hint(self) -> str:
        """What the model is told about repeating itself; mostly nothing."""
        guard = self.options.loop_guard
        if guard is None or self._repeats.count < guard.hint:
            return ""
        return self._repeats.hint


def cost_of(usage: Usage, prices: Prices) -> float:
    """Return what a model call cost, in the currency of the price table."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    return (
        (usage.input_tokens - cached) * prices.input
        + cached * cached_price
        + usage.output_tokens * prices.output
    ) / 1_000_000


def estimated_usage(asked: CallModel, reply_text: str) -> Usage:
    """Return about what a call used whose provider counts nothing."""
    sent = sum(len(message.canonical) for message in asked.request.messages)
    said = len(reply_text.encode("utf-8", "replace"))
    return Usage(input_tokens=sent // 4 + 1, output_tokens=said // 4 + 1)
