"""Why a run cannot be scored.

EvaluationError
  NotScored            the example or the run lacks what the evaluator needs
    NotApplicable      the example has nothing to compare with
  InvalidScore         an evaluator answered something that is not a score
"""

from tools.text.translatable import translatable


class EvaluationError(Exception):
    """The message is the reason that people read."""


class NotScored(EvaluationError):
    """The example or the run lacks what the evaluator needs."""


class NotApplicable(NotScored):
    """The example has nothing to compare with, so the other evaluators decide."""


class InvalidScore(EvaluationError):
    """An evaluator answered something that is not a score."""


def describe_evaluator_error(error: BaseException) -> str:
    """Return the reason of a run whose evaluator raised what it should not."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return translatable("The evaluator failed: %(error)s", error=said[:500])
