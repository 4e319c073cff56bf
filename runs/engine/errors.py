"""Why a run cannot go on, or a reply not be used.

EngineError            the run fails, and says why
  ParseError           the reply is not in the kind's format; the model is told
"""


class EngineError(Exception):
    """A run cannot go on; `code` is for programs, the message for people."""

    code = "engine"


class ParseError(EngineError):
    """A reply that cannot be understood; the message tells the model what to write."""

    code = "parse"

    def __init__(self, message: str, *, tried_action: bool = False) -> None:
        super().__init__(message)
        self.tried_action = tried_action
        """Whether the reply was meant as an action, so that it is no answer either."""
