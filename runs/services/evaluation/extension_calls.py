"""Calls of evaluators that operators have written: they end, whatever the code does."""

from collections.abc import Callable
from typing import TypeVar

from runs.evaluation.errors import NotScored, describe_evaluator_error
from tools.errors import DeadlineExceeded
from tools.net.deadline import Deadline
from tools.sandbox.abandoned_calls import run_or_abandon
from tools.text.translatable import translatable

R = TypeVar("R")

EXTENSION_SECONDS = 60.0
"""What one score may take, without the replies of models that it asks for."""


class ExtensionCalls:
    """The calls that one score takes, with a time limit for all of them."""

    def __init__(self) -> None:
        self.left = EXTENSION_SECONDS

    def call(self, code: Callable[[], R], /) -> R:
        """Call `code` in a thread; raise `NotScored` if it does not end in time."""
        deadline = Deadline(seconds=self.left)
        try:
            return run_or_abandon(lambda: call_without_exit(code), deadline)
        except DeadlineExceeded:
            raise NotScored(
                translatable(
                    "The evaluator did not end in %(seconds)s s.",
                    seconds=f"{EXTENSION_SECONDS:g}",
                )
            ) from None
        finally:
            self.left -= deadline.elapsed()


def call_without_exit(code: Callable[[], R]) -> R:
    """Raise nothing that would end the thread that waits, such as `SystemExit`."""
    try:
        return code()
    except Exception:
        raise
    except BaseException as error:  # noqa: BLE001  (foreign code may raise anything)
        raise NotScored(describe_evaluator_error(error)) from None
