"""What can go wrong in a tool or on the way out of the machine.

Interrupted            the operation was ended from outside
  DeadlineExceeded     its time was over
  CallCanceled         the run was canceled, or another worker has it
ToolFailed             the model can fix it: its sentence is the observation
  ToolTimedOut         one call took longer than its tool may
  ToolCrashed          the tool's own code raised something
"""


class Interrupted(Exception):
    """An operation was ended before it was done."""


class DeadlineExceeded(Interrupted):
    """The operation took longer than it may."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"No answer within {seconds:g} s.")


class CallCanceled(Interrupted):
    """The run was canceled, or this worker no longer has it."""

    def __init__(self) -> None:
        super().__init__("The call was ended because the run was stopped.")


class ToolFailed(Exception):
    """A call did not work; the message is a sentence for the model."""


class ToolTimedOut(ToolFailed):
    """One call took longer than its tool may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The tool gave no answer within {seconds:g} s.")


class ToolCrashed(ToolFailed):
    """The tool's own code raised something."""

    def __init__(self, error: BaseException) -> None:
        message = str(error).strip()
        name = type(error).__name__
        super().__init__(
            f"{name}: {message}" if message else f"The tool raised {name}."
        )
