"""The banner of a run: only when a person is needed."""

from dataclasses import dataclass, field
from typing import NamedTuple

from runs.models import Run
from runs.views.run_rows import next_number
from runs.views.run_state import RunState
from runs.views.run_window import has_failed_call

ADVICE = {
    "auth": "Give the provider a key that works, then resume.",
    "not_found": "Fork it with a model that the provider has, or mend the provider's "
    "address, then resume.",
    "bad_request": "Fork it with another model or other parameters.",
    "bad_reply": "Mend the provider's address, then resume.",
    "context_too_long": "Fork it with a model that takes more, or cut the result.",
    "transport": "Start the model's server, then resume.",
    "timeout": "Resume when the model's server works again.",
    "overloaded": "Resume when the model's server works again.",
    "rate_limit": "Resume when the account may ask again.",
    "crashed_repeatedly": "Look into the worker's log, then resume.",
    "internal": "Look into the worker's log, then resume.",
}
FAILS_AGAIN = {"not_found", "bad_request", "context_too_long"}
"""Codes of failures that the same request meets again: a fork changes it."""


class Limit(NamedTuple):
    """A limit that a resume can raise."""

    name: str
    label: str
    value: float


@dataclass
class Banner:
    """What a person is needed for, if anything."""

    is_failed: bool = False
    is_stopped: bool = False
    number: int = 0
    place: str = ""
    """Where it failed, as the list of steps shows it."""
    advice: str = ""
    wants_fork: bool = False
    limits: list[Limit] = field(default_factory=list)
    error: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.is_failed or self.is_stopped or self.error)


def banner_of(state: RunState, *, error: str = "") -> Banner:
    """Return the banner; `error` is what was wrong with the last answer.

    What the run asks people is on it too, see `runs.views.questions`.
    """
    run = state.run
    banner = Banner(error=error)
    if run.status == Run.Status.FAILED:
        banner.is_failed = True
        banner.number = next_number(run)
        banner.place = place_of_failure(run)
        banner.wants_fork = run.error_code in FAILS_AGAIN
        banner.advice = ADVICE.get(
            run.error_code,
            "Mend what the sentence names, then resume or re-run it.",
        )
    elif run.status == Run.Status.STOPPED:
        banner.is_stopped = True
        banner.limits = limits_to_raise(state)
    return banner


def place_of_failure(run: Run) -> str:
    """Say where a run failed; not every failure has a step of its own."""
    number = next_number(run)
    if has_failed_call(run):
        return f"in step {number}"
    return f"after step {number - 1}" if number > 1 else "before its first step"


def limits_to_raise(state: RunState) -> list[Limit]:
    """Return the limit that stopped the run, doubled as a proposal."""
    limits, reason = state.limits, state.run.stop_reason
    if reason == Run.StopReason.ITERATIONS and limits.max_iterations:
        return [Limit("max_iterations", "Rounds", limits.max_iterations * 2)]
    if reason == Run.StopReason.TIME and limits.max_execution_time:
        seconds = limits.max_execution_time * 2
        return [Limit("max_execution_time", "Seconds of work", seconds)]
    budget = limits.budget
    if reason == Run.StopReason.TOKENS and budget and budget.tokens:
        return [Limit("tokens", "Tokens", budget.tokens * 2)]
    if reason == Run.StopReason.COST and budget and budget.cost:
        return [Limit("cost", "Cost in $", budget.cost * 2)]
    return []
