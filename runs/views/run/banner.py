"""The banner of a run that needs attention."""

from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models.functions import Length
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.types import ExecutorOptions
from runs.models import Run
from runs.views.run.prompt import CHARACTERS_PER_TOKEN
from runs.views.run.rows import (
    get_next_row_number,
    get_step_row_number,
    query_agent_steps,
)
from runs.views.run.state import RunState
from runs.views.run.window import has_failed_call

ADVICE = {
    "auth": gettext_lazy("Enter a valid API key for the provider, then resume."),
    "forbidden": gettext_lazy(
        "Give the key access to the model, or fork the run with another model."
    ),
    "not_found": gettext_lazy(
        "Fork the run with a model that the provider offers, or correct the base URL "
        "of the provider and resume."
    ),
    "bad_request": gettext_lazy("Fork the run with another model or other parameters."),
    "bad_reply": gettext_lazy(
        "Correct the base URL of the provider, or resume when its server works again."
    ),
    "context_too_long": gettext_lazy(
        "Fork the run with a model that has a larger context, or shorten the result."
    ),
    "transport": gettext_lazy("Start the model server, then resume."),
    "timeout": gettext_lazy("Resume when the model server responds again."),
    "overloaded": gettext_lazy("Resume when the model server responds again."),
    "rate_limit": gettext_lazy("Resume when the rate limit of the account is reset."),
    "crashed_repeatedly": gettext_lazy("Check the worker log, then resume."),
    "internal": gettext_lazy("Check the worker log, then resume."),
}
UNRETRYABLE_CODES = {"not_found", "bad_request", "context_too_long"}
"""Error codes that the same request would get again; a fork can change it."""
MIN_LARGE_RESULT = 8_000
"""Characters from which a result is named as a cause of a too long request."""


class RaisableLimit(NamedTuple):
    """A limit that a resume can raise."""

    name: str
    label: str
    value: float


class LargeResult(NamedTuple):
    """The longest result of a tool that a request contained."""

    number: int
    """Of its row."""
    tool: str
    tokens: int
    """Estimated."""


@dataclass
class RunBanner:
    """What needs attention, if anything."""

    is_failed: bool = False
    is_limit_reached: bool = False
    number: int = 0
    """The row to fork at."""
    large_result: LargeResult | None = None
    title: str = ""
    """Where it failed."""
    advice: str = ""
    wants_fork: bool = False
    limits: list[RaisableLimit] = field(default_factory=list)
    error: str = ""

    @property
    def is_shown(self) -> bool:
        return bool(self.is_failed or self.is_limit_reached or self.error)


def build_banner(state: RunState, *, error: str = "") -> RunBanner:
    """Return the banner; `error` is what was wrong with the last answer.

    For approvals, see `runs.views.approvals.details`.
    """
    run = state.run
    banner = RunBanner(error=error)
    if run.status == Run.Status.FAILED:
        banner.is_failed = True
        banner.number = get_next_row_number(run)
        banner.title = describe_run_failure(run)
        banner.wants_fork = run.error_code in UNRETRYABLE_CODES
        if run.error_code == "context_too_long":
            banner.large_result = find_large_result(run, state.limits)
        banner.advice = str(
            ADVICE.get(
                run.error_code,
                _("Fix the problem described above, then resume or re-run."),
            )
        )
    elif run.status == Run.Status.LIMIT_REACHED:
        banner.is_limit_reached = True
        banner.limits = list_limits_to_raise(run, state.limits)
    return banner


def find_large_result(run: Run, limits: ExecutorOptions) -> LargeResult | None:
    """Return the longest result that every request contains, if it is long."""
    if limits.trim_intermediate_steps != -1:
        return None
    steps = query_agent_steps([run.pk]).annotate(size=Length("observation"))
    step = steps.filter(size__gte=MIN_LARGE_RESULT).order_by("-size").first()
    if step is None:
        return None
    size = min(step.size, limits.observation_limit)
    number = get_step_row_number(step)
    return LargeResult(number, step.tool, size // CHARACTERS_PER_TOKEN)


def describe_run_failure(run: Run) -> str:
    """Return where a run failed; not every failure has a step of its own."""
    number = get_next_row_number(run)
    if has_failed_call(run):
        return _("Failed in step %(number)s") % {"number": number}
    if number > 1:
        return _("Failed after step %(number)s") % {"number": number - 1}
    return _("Failed before the first step")


def propose_resume_limits(run: Run, limits: ExecutorOptions) -> dict[str, float]:
    """Return twice the limit that ended the run."""
    return {limit.name: limit.value for limit in list_limits_to_raise(run, limits)}


def list_limits_to_raise(run: Run, limits: ExecutorOptions) -> list[RaisableLimit]:
    """Return the limit that ended the run, doubled as a proposal."""
    reason = run.stop_reason
    if reason == Run.StopReason.ITERATIONS and limits.max_iterations:
        return [RaisableLimit("max_iterations", _("Rounds"), limits.max_iterations * 2)]
    if reason == Run.StopReason.TIME and limits.max_execution_time:
        seconds = limits.max_execution_time * 2
        return [RaisableLimit("max_execution_time", _("Working time (s)"), seconds)]
    budget = limits.budget
    if reason == Run.StopReason.TOKENS and budget and budget.tokens:
        return [RaisableLimit("tokens", _("Tokens"), budget.tokens * 2)]
    if reason == Run.StopReason.COST and budget and budget.cost:
        return [RaisableLimit("cost", _("Cost ($)"), budget.cost * 2)]
    return []
