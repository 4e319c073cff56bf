"""The gate of an agent: what a draft must reach on a dataset before it is published."""

from typing import Literal

from pydantic import Field

from runs.engine.types import FrozenModel

RuleKind = Literal["scored", "pass_rate", "must_pass", "regression", "p95", "cost"]
WORSE_KINDS = ("probably_worse", "clearly_worse")
"""Conclusions of `runs.evaluation.comparison` that are a regression."""


class GateRules(FrozenModel):
    """What is required; null and empty stand for nothing."""

    min_pass_rate: float = Field(default=0.9, ge=0, le=1)
    must_pass_tag: str = ""
    """Each run of an example with this tag must pass."""
    refuses_regression: bool = True
    """Whether it must not be worse than the published version."""
    max_p95_seconds: float | None = Field(default=None, gt=0)
    max_cost_increase: float | None = Field(default=None, ge=0)
    """Percent of the cost per run of the published version."""


class GateFigures(FrozenModel):
    """How one candidate did."""

    runs: int
    passed: int
    unscored: int = 0
    """Runs that failed, or that no evaluator has scored."""
    tagged_runs: int = 0
    """Of examples that must pass."""
    tagged_passed: int = 0
    p95_seconds: float | None = None
    cost_per_run: float = 0.0

    @property
    def rate(self) -> float:
        return self.passed / self.runs if self.runs else 0.0


class RuleResult(FrozenModel):
    """One rule, and the numbers that it judged."""

    kind: RuleKind
    is_met: bool
    required: float | None = None
    candidate: float | None = None
    baseline: float | None = None
    """Of the published version; null without one."""
    better: int = 0
    worse: int = 0
    """Examples, for the rule on regressions."""
    tag: str = ""


class GateResult(FrozenModel):
    """What a gate says of a draft; stored with the version that is published."""

    rules: tuple[RuleResult, ...] = ()
    dataset: str = ""
    """Its slug."""
    dataset_version: int = 0
    runs: int = 0
    experiment: int | None = None
    at: str = ""
    """When the experiment ended, as ISO 8601."""
    origin: str = ""
    """The address of the site that an agent file comes from; empty for this one."""
    content_digest: str = ""
    """In an agent file: of the agent, its prompt and its tools."""
    requirements: str = ""
    """In a published version: the digest of the rules, examples and evaluators."""
    called_specs: dict[str, str] = {}
    """In a published version: digests of the agents that it calls, by their keys."""
    reason: str = ""
    """Why it was published although the gate was not met."""

    @property
    def is_met(self) -> bool:
        return bool(self.rules) and all(rule.is_met for rule in self.rules)

    @property
    def unmet(self) -> tuple[RuleResult, ...]:
        return tuple(rule for rule in self.rules if not rule.is_met)


def judge_gate(
    rules: GateRules,
    candidate: GateFigures,
    *,
    baseline: GateFigures | None = None,
    conclusion: str = "",
    better: int = 0,
    worse: int = 0,
) -> tuple[RuleResult, ...]:
    """Return the result of each rule.

    A run without a score never counts as passed. Without a baseline, rules that
    compare with it are met. `conclusion` is a `ConclusionKind`.
    """
    found = [
        RuleResult(
            kind="scored",
            is_met=candidate.runs > 0 and candidate.unscored == 0,
            required=candidate.runs,
            candidate=candidate.runs - candidate.unscored,
            baseline=baseline.runs - baseline.unscored if baseline else None,
        ),
        RuleResult(
            kind="pass_rate",
            is_met=candidate.rate >= rules.min_pass_rate - 1e-9,
            required=rules.min_pass_rate,
            candidate=candidate.rate,
            baseline=baseline.rate if baseline else None,
        ),
    ]
    if rules.must_pass_tag:
        found.append(
            RuleResult(
                kind="must_pass",
                is_met=0 < candidate.tagged_runs == candidate.tagged_passed,
                required=candidate.tagged_runs,
                candidate=candidate.tagged_passed,
                baseline=baseline.tagged_passed if baseline else None,
                tag=rules.must_pass_tag,
            )
        )
    if rules.refuses_regression and baseline is not None:
        found.append(
            RuleResult(
                kind="regression",
                is_met=conclusion not in WORSE_KINDS,
                better=better,
                worse=worse,
            )
        )
    if rules.max_p95_seconds is not None:
        seconds = candidate.p95_seconds
        found.append(
            RuleResult(
                kind="p95",
                is_met=seconds is not None and seconds <= rules.max_p95_seconds,
                required=rules.max_p95_seconds,
                candidate=seconds,
                baseline=baseline.p95_seconds if baseline else None,
            )
        )
    if rules.max_cost_increase is not None and baseline is not None:
        most = baseline.cost_per_run * (1 + rules.max_cost_increase / 100)
        found.append(
            RuleResult(
                kind="cost",
                is_met=candidate.cost_per_run <= most + 1e-9,
                required=rules.max_cost_increase,
                candidate=candidate.cost_per_run,
                baseline=baseline.cost_per_run,
            )
        )
    return tuple(found)
