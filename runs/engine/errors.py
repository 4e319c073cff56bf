"""Errors of the engine.

EngineError            the run fails with the message
  ParseError           the reply is not in the kind's format; the model gets the error
"""


class EngineError(Exception):
    """A run cannot continue; `code` is for programs, the message for people."""

    code = "engine"


class ParseError(EngineError):
    """The reply cannot be parsed; the message shows the model what to write."""

    code = "parse"

    def __init__(self, message: str, *, tried_action: bool = False) -> None:
        super().__init__(message)
        self.tried_action = tried_action
        """Whether the reply was meant as an action, and so is not an answer either."""
