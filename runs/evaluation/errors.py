"""Why a run cannot be scored.

EvaluationError
  NotScored            the example or the run lacks what the evaluator needs
    NotApplicable      the example has nothing to compare with
  InvalidScore         an evaluator answered something that is not a score
"""


class EvaluationError(Exception):
    """The message is the reason that people read."""


class NotScored(EvaluationError):
    """The example or the run lacks what the evaluator needs."""


class NotApplicable(NotScored):
    """The example has nothing to compare with, so the other evaluators decide."""


class InvalidScore(EvaluationError):
    """An evaluator answered something that is not a score."""
