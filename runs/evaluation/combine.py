"""What all evaluators together say of a run."""

from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple, Protocol


class Judgment(Protocol):
    """What one evaluator says, as a result or as a stored score."""

    @property
    def value(self) -> float | None: ...
    @property
    def passed(self) -> bool | None: ...
    @property
    def problem(self) -> str: ...
    @property
    def applies(self) -> bool: ...


class CombinedScore(NamedTuple):
    passed: bool | None
    """Null if no evaluator decides, or one that could fail the run has no score."""
    value: float | None
    """The mean; null if an evaluator has no score."""


def combine_scores(judgments: Iterable[Judgment]) -> CombinedScore:
    """Return whether a run passes all evaluators that apply, and its mean score."""
    found = [one for one in judgments if one.applies]
    decided = [one.passed for one in found if one.passed is not None]
    values = [one.value for one in found if one.value is not None]
    if any(one.problem for one in found):
        return CombinedScore(False if False in decided else None, None)
    return CombinedScore(
        all(decided) if decided else None, fmean(values) if values else None
    )
