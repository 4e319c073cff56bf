"""What callers of the API may send: the body that starts a run, and query strings."""

import hashlib
import json
from typing import Any

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict, ValidationError

from runs.api.problems import Problem, refused, unreadable
from runs.services.errors import FieldError

LONGEST_KEY = 200


class StartRun(BaseModel):
    """The body of `POST /api/v1/runs`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    agent: str
    """Slug."""
    inputs: dict[str, Any] = {}
    conversation: int | None = None

    @property
    def digest(self) -> str:
        """The same for bodies that mean the same."""
        shape = json.dumps(self.model_dump(), sort_keys=True)
        return hashlib.sha256(shape.encode()).hexdigest()


class StepsWindow(BaseModel):
    """The query string of `GET /api/v1/runs/{id}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wanted: bool = True
    after: int = -1
    """Steps with a higher index."""


def start_run_body(request: HttpRequest) -> StartRun:
    """Read the body; raise what is wrong with it."""
    try:
        return StartRun.model_validate_json(request.body)
    except ValidationError as error:
        raise unreadable(error) from None


def idempotency_key(request: HttpRequest) -> str | None:
    """Return the caller's name for this request; None without one."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise refused(
            "Idempotency-Key", f"It must be 1 to {LONGEST_KEY} printable characters."
        )
    return key


def steps_window(request: HttpRequest) -> StepsWindow:
    """Read `steps` and `steps_after`; raise for others and for odd values."""
    unknown = set(request.GET) - {"steps", "steps_after"}
    if unknown:
        raise Problem(
            422, [FieldError(name, "This field is not known.") for name in unknown]
        )
    if request.GET.get("steps", "none") != "none":
        raise refused("steps", "It can only be `none`.")
    after = request.GET.get("steps_after", "-1")
    if not after.removeprefix("-").isdecimal() or len(after) > 12:
        raise refused("steps_after", "It must be the index of a step.")
    return StepsWindow(wanted="steps" not in request.GET, after=int(after))
