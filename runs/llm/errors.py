"""Why a model call failed, in words for the person who reads the run.

ModelFailed            code, message, and whether and when another attempt makes sense
"""

from typing import Literal

from runs.engine.errors import EngineError

FailureCode = Literal[
    "auth",
    "not_found",
    "bad_request",
    "context_too_long",
    "content_filter",
    "rate_limit",
    "overloaded",
    "transport",
    "timeout",
    "bad_reply",
    "refused_address",
]


class ModelFailed(EngineError):
    """One attempt to get a reply did not work."""

    def __init__(
        self,
        code: FailureCode,
        message: str,
        *,
        status: int | None = None,
        may_retry: bool = False,
        retry_after: float | None = None,
        shown: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        """HTTP status, where there was one."""
        self.may_retry = may_retry
        self.retry_after = retry_after
        """Seconds the provider asked to wait."""
        self.shown = shown
        """Whether answer text had been handed to `on_text` before it broke."""
