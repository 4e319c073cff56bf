"""What a run has used, and whether it may continue."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from runs.engine.types import (
    AgentSpec,
    AgentStep,
    ExecutorOptions,
    ModelRequest,
    Prices,
    ResumePoint,
    RunError,
    StopReason,
    Usage,
)

MAX_PARSE_ERRORS = 3
"""This many in a row end the run (R1)."""

_CLOCK_TOLERANCE = 0.001
"""Seconds; a driver's clock may end a call slightly early."""


class Progress:
    """Counts what a run has used, and decides from its options whether it ends."""

    def __init__(self, spec: AgentSpec, resumes: Sequence[ResumePoint]) -> None:
        self.options = spec.executor
        self._prices = spec.prices or Prices()
        self._resumes = list(resumes)
        self.rounds = 0
        self.steps = 0
        self.parse_errors = 0
        """In a row."""
        self.calls: Counter[str] = Counter()
        """By tool."""
        self.fatal_error: RunError | None = None
        self._repeats = RepeatCounter()
        self._is_out_of_time = False
        self._elapsed = 0.0
        self._tokens = 0
        self._cost = 0.0

    def find_end_reason(self) -> RunError | StopReason | None:
        """Return why the run ends, or None; a resume at this step cancels it."""
        while self._resumes and self._resumes[0].at_index <= self.steps:
            self._apply_resume(self._resumes.pop(0))
        if self.fatal_error is not None:
            return self.fatal_error
        if self.parse_errors >= MAX_PARSE_ERRORS:
            message = (
                f"The model's reply could not be understood {MAX_PARSE_ERRORS} times."
            )
            return RunError(code="parse_errors", message=message)
        return self._find_reached_limit()

    def _find_reached_limit(self) -> StopReason | None:
        if (left := self.seconds_left()) is not None and left <= _CLOCK_TOLERANCE:
            return "time"
        most = self.options.max_iterations
        if most is not None and self.rounds >= most:
            return "iterations"
        guard = self.options.loop_guard
        if guard is not None and self._repeats.count >= guard.stop:
            return "loop"
        return self.find_exhausted_budget()

    def find_exhausted_budget(self) -> StopReason | None:
        """Return the budget that allows no further model call, if any."""
        budget = self.options.budget
        if budget is None:
            return None
        if budget.tokens is not None and self._tokens >= budget.tokens:
            return "tokens"
        if budget.cost is not None and self._cost >= budget.cost:
            return "cost"
        return None

    def _apply_resume(self, resume: ResumePoint) -> None:
        self.fatal_error = None
        self.parse_errors = 0
        self._is_out_of_time = False
        self._repeats = RepeatCounter()
        merged: dict[str, Any] = {**self.options.model_dump(), **resume.limits}
        try:
            self.options = ExecutorOptions.model_validate(merged)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            message = f"The run cannot be resumed with these limits: {why}."
            self.fatal_error = RunError(code="limits", message=message)

    def seconds_left(self) -> float | None:
        """Return the working time left, never negative; None without a limit."""
        limit = self.options.max_execution_time
        if limit is None:
            return None
        return 0.0 if self._is_out_of_time else max(limit - self._elapsed, 0.0)

    def add_time(self, seconds: float, *, all_of_it: bool = False) -> None:
        """Add working time; `all_of_it` if the run's time limit ended the call."""
        self._elapsed += seconds
        self._is_out_of_time = self._is_out_of_time or all_of_it

    def add_usage(self, usage: Usage) -> None:
        self._tokens += usage.input_tokens + usage.output_tokens
        self._cost += compute_usage_cost(usage, self._prices)

    def add_agent_usage(self, *, tokens: int, cost: float) -> None:
        self._tokens += tokens
        self._cost += cost

    def add_round(self, steps: tuple[AgentStep, ...], *, is_parse_error: bool) -> None:
        self.rounds += 1
        self.steps += len(steps)
        self.parse_errors = self.parse_errors + 1 if is_parse_error else 0
        self._repeats.add(steps)

    @property
    def hint(self) -> str:
        """The loop guard's hint for the model; usually empty."""
        guard = self.options.loop_guard
        if guard is None or self._repeats.count < guard.hint:
            return ""
        return self._repeats.hint


def compute_usage_cost(usage: Usage, prices: Prices) -> float:
    """Return the cost of a model call, in the currency of the price table."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    return (
        (usage.input_tokens - cached) * prices.input
        + cached * cached_price
        + usage.output_tokens * prices.output
    ) / 1_000_000


def estimate_usage(request: ModelRequest, reply_text: str) -> Usage:
    """Estimate the usage of a call if the provider reports none."""
    sent = sum(message.size for message in request.messages)
    said = len(reply_text.encode("utf-8", "replace"))
    return Usage(input_tokens=sent // 4 + 1, output_tokens=said // 4 + 1)


class RepeatCounter:
    """Counts consecutive rounds that equal the round before."""

    def __init__(self) -> None:
        self.count = 0
        self._last: list[tuple[str, object, str]] | None = None

    def add(self, steps: tuple[AgentStep, ...]) -> None:
        """Compare one more round: its calls, inputs and observations."""
        this = [(s.action.tool, s.action.tool_input, s.observation) for s in steps]
        self.count = self.count + 1 if this == self._last else 0
        self._last = this

    @property
    def hint(self) -> str:
        return (
            f"(You have done exactly this {self.count + 1} times with the same result. "
            "Do something else, or give your final answer.)"
        )
