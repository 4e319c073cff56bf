"""A span as it arrived, and why a request with spans is refused.

TraceRefused            nothing of a request is stored
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

MAX_TEXT_CHARS = 200_000
"""Characters of one text of an attribute that are kept."""


class ReceivedSpan(BaseModel):
    """One operation of another program; texts can be stored in any database."""

    model_config = ConfigDict(frozen=True)

    trace_id: str
    """32 hex digits; anything else, or only zeros, is not valid."""
    span_id: str
    """16 hex digits."""
    parent_id: str = ""
    name: str = ""
    service: str = ""
    """`service.name` of the resource."""
    started_at: int = 0
    """Nanoseconds since 1970."""
    ended_at: int = 0
    attributes: dict[str, Any] = {}
    has_failed: bool = False
    error: str = ""
    """What the status or a recorded exception says; empty without an error."""


class TraceRefused(Exception):
    """The request is answered with an HTTP status and a sentence."""

    def __init__(
        self, status: int, message: str, *, retry_seconds: int | None = None
    ) -> None:
        self.status, self.message = status, message
        self.retry_seconds = retry_seconds
        super().__init__(message)
