"""The evaluator of tool rules: what a run must call, and what it must not."""

from collections import Counter
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from runs.engine.types import FrozenModel
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import RecordedStep, ScoreResult
from tools.text.translatable import join_sentences, translatable

ToolNames = tuple[str, ...]


class CallOrder(FrozenModel):
    """Before any call of `then` there is a successful one of `first`."""

    first: str = Field(min_length=1)
    then: str = Field(min_length=1)


class ToolRulesConfig(EvaluatorConfig):
    """Rules of the tools that a run calls; the score is the part that holds."""

    must_call: ToolNames = Field(default=(), max_length=100)
    """Each succeeds at least once."""
    never_call: ToolNames = Field(default=(), max_length=100)
    at_most: dict[str, int] = Field(default={}, max_length=100)
    """How many calls of a tool there may be."""
    in_order: tuple[CallOrder, ...] = Field(default=(), max_length=100)
    most_calls: int | None = Field(default=None, ge=0)
    """How many calls there may be together."""

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        if any(most < 0 for most in self.at_most.values()):
            raise ValueError(translatable("A number of calls is 0 or more."))
        both = sorted({*self.must_call} & {*self.never_call})
        if both:
            raise ValueError(
                translatable(
                    "%(tool)s cannot be both required and forbidden.",
                    tool=repr(both[0]),
                )
            )
        listed = (self.must_call, self.never_call, self.at_most, self.in_order)
        if not any(listed) and self.most_calls is None:
            raise ValueError(translatable("Enter at least one rule."))
        return self


class RuleCheck(NamedTuple):
    broken: str
    """A sentence; empty if the rule holds."""


def score_tool_rules(config: ToolRulesConfig, given: EvaluationInput) -> ScoreResult:
    checks = check_tool_rules(config, given.record.calls)
    broken = [check.broken for check in checks if check.broken]
    return ScoreResult(
        value=1 - len(broken) / len(checks),
        passed=not broken,
        explanation=join_sentences(broken[:10]),
    )


def check_tool_rules(
    config: ToolRulesConfig, calls: tuple[RecordedStep, ...]
) -> list[RuleCheck]:
    count = Counter(step.tool for step in calls)
    succeeded = {step.tool for step in calls if not step.failed}
    checks = [
        RuleCheck(
            ""
            if tool in succeeded
            else translatable("%(tool)s was not called successfully.", tool=tool)
        )
        for tool in config.must_call
    ]
    checks += [
        RuleCheck(
            translatable("%(tool)s was called.", tool=tool) if count[tool] else ""
        )
        for tool in config.never_call
    ]
    checks += [
        RuleCheck(
            translatable(
                "Calls of %(tool)s: %(count)s, at most %(most)s allowed.",
                tool=tool,
                count=count[tool],
                most=most,
            )
            if count[tool] > most
            else ""
        )
        for tool, most in config.at_most.items()
    ]
    checks += [RuleCheck(_find_wrong_order(order, calls)) for order in config.in_order]
    if config.most_calls is not None:
        total = len(calls)
        too_many = translatable(
            "Calls in total: %(count)s, at most %(most)s allowed.",
            count=total,
            most=config.most_calls,
        )
        checks.append(RuleCheck(too_many if total > config.most_calls else ""))
    return checks


def _find_wrong_order(order: CallOrder, calls: tuple[RecordedStep, ...]) -> str:
    for step in calls:
        if step.tool == order.first and not step.failed:
            return ""
        if step.tool == order.then:
            return translatable(
                "%(then)s was called before %(first)s had succeeded.",
                then=order.then,
                first=order.first,
            )
    return ""


TOOL_RULES = EvaluatorKind("tool-rules", ToolRulesConfig, score_tool_rules)
