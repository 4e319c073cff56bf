"""The evaluator of tool calls: those of the run against the expected ones."""

from collections.abc import Sequence
from typing import Literal

from runs.engine.parsing.json_schema import find_schema_problem, find_schema_violations
from runs.evaluation.errors import NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ExpectedCall, RecordedStep, ScoreResult
from tools.text.translatable import join_sentences, translatable

MAX_CALLS = 200
"""Calls of a run that are matched with as many expected ones."""


class ToolCallsConfig(EvaluatorConfig):
    """How the calls of a run are matched with the expected ones."""

    match: Literal["strict", "unordered", "subset", "superset"] = "strict"
    """The same in the same order, in any order, no others, or at least these."""
    arguments: Literal["exact", "schema", "ignored"] = "exact"
    """The expected arguments are values, JSON Schemas, or do not matter."""
    skip_failed: bool = False
    """Whether failed calls are left out, so that a second attempt is allowed."""


def score_tool_calls(config: ToolCallsConfig, given: EvaluationInput) -> ScoreResult:
    expected = given.example.expected_calls
    made = [s for s in given.record.calls if not (config.skip_failed and s.failed)]
    if max(len(made), len(expected)) > MAX_CALLS:
        raise NotScored(
            translatable(
                "Runs of more than %(count)s calls are not matched.",
                count=f"{MAX_CALLS:,}",
            )
        )
    if config.arguments == "schema":
        _check_schemas(expected)
    if config.match == "strict":
        return _score_in_order(expected, made, config)
    pairs = pair_calls(expected, made, config)
    missing = [call.tool for at, call in enumerate(expected) if at not in pairs]
    used = set(pairs.values())
    extra = [step.tool for at, step in enumerate(made) if at not in used]
    wrong: list[str] = []
    if missing and config.match != "subset":
        wrong.append(translatable("Missing: %(tools)s.", tools=", ".join(missing[:10])))
    if extra and config.match != "superset":
        wrong.append(
            translatable("Unexpected: %(tools)s.", tools=", ".join(extra[:10]))
        )
    return ScoreResult.of_pass(not wrong, join_sentences(wrong))


def _check_schemas(expected: Sequence[ExpectedCall]) -> None:
    for call in expected:
        if call.tool_input is not None and (
            why := find_schema_problem(call.tool_input)
        ):
            raise NotScored(
                translatable(
                    "The arguments expected of %(tool)s: %(problem)s",
                    tool=repr(call.tool),
                    problem=why,
                )
            )


def _score_in_order(
    expected: Sequence[ExpectedCall],
    made: Sequence[RecordedStep],
    config: ToolCallsConfig,
) -> ScoreResult:
    for number, (call, step) in enumerate(zip(expected, made, strict=False), start=1):
        if call.tool != step.tool:
            return ScoreResult.of_pass(
                False,
                translatable(
                    "Call %(number)s: expected %(expected)s, got %(got)s.",
                    number=number,
                    expected=call.tool,
                    got=step.tool,
                ),
            )
        if not is_expected_call(call, step, config):
            return ScoreResult.of_pass(
                False,
                translatable(
                    "Call %(number)s: %(tool)s has other arguments.",
                    number=number,
                    tool=call.tool,
                ),
            )
    if len(expected) != len(made):
        return ScoreResult.of_pass(
            False,
            translatable(
                "Calls expected: %(expected)s, made: %(got)s.",
                expected=len(expected),
                got=len(made),
            ),
        )
    return ScoreResult.of_pass(True)


def is_expected_call(
    call: ExpectedCall, step: RecordedStep, config: ToolCallsConfig
) -> bool:
    if call.tool != step.tool:
        return False
    if config.arguments == "ignored" or call.tool_input is None:
        return True
    if config.arguments == "schema":
        return not find_schema_violations(step.tool_input, call.tool_input)
    return is_equal_json(call.tool_input, step.tool_input)


def is_equal_json(one: object, other: object) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_equal_json(value, other[name]) for name, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def pair_calls(
    expected: Sequence[ExpectedCall],
    made: Sequence[RecordedStep],
    config: ToolCallsConfig,
) -> dict[int, int]:
    """Return as many pairs (expected, made) as possible, each in one pair at most.

    A schema may fit several calls, so a pair may have to change for the next one.
    """
    fits = {
        at: [n for n, step in enumerate(made) if is_expected_call(call, step, config)]
        for at, call in enumerate(expected)
    }
    partner: dict[int, int] = {}
    for start in fits:
        _find_partner(start, fits, partner)
    return {at: n for n, at in partner.items()}


def _find_partner(
    start: int, fits: dict[int, list[int]], partner: dict[int, int]
) -> None:
    """Give `start` a call, moving earlier pairs if needed: an augmenting path."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for at in waiting:
        for n in fits[at]:
            if n in came_from:
                continue
            came_from[n] = at
            if n in partner:
                waiting.append(partner[n])
                continue
            _move_pairs(n, start, came_from, partner)
            return


def _move_pairs(
    free: int, start: int, came_from: dict[int, int], partner: dict[int, int]
) -> None:
    moved = {at: n for n, at in partner.items()}
    while True:
        at = came_from[free]
        partner[free] = at
        if at == start:
            return
        free = moved[at]


TOOL_CALLS = EvaluatorKind("tool-calls", ToolCallsConfig, score_tool_calls)
