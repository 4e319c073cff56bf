"""Why a model call failed, in a sentence for the person who reads the run.

ModelCallError         code, message, and whether and when to retry
"""

from typing import Literal

from runs.engine.errors import EngineError

FailureCode = Literal[
    "auth",
    "forbidden",
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


class ModelCallError(EngineError):
    """One attempt to get a reply failed."""

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
        """HTTP status, if there was one."""
        self.may_retry = may_retry
        self.retry_after = retry_after
        """Seconds that the provider asked to wait."""
        self.has_streamed = shown
        """Whether answer text had been passed to `on_text` before the failure."""
