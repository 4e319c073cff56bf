"""Request bodies and query strings of runs."""

import hashlib
import json
from collections import Counter
from contextlib import suppress
from math import isinf
from typing import Any, TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict, ValidationError

from runs.api.problems import ApiProblem, field_problem, validation_problem
from runs.engine.types import Budget, ExecutorOptions
from runs.services.errors import FieldError

MAX_KEY_LENGTH = 200

B = TypeVar("B", bound=BaseModel)


class StrictBody(BaseModel):
    """A body or a part of one; unknown fields are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LimitsBody(StrictBody):
    """Limits; null removes a limit."""

    max_iterations: int | None = None
    max_execution_time: float | None = None
    tokens: int | None = None
    cost: float | None = None

    def changed_options(self, current: ExecutorOptions) -> dict[str, Any]:
        """Return the limits in the body, as fields of `ExecutorOptions`."""
        sent = self.model_dump(exclude_unset=True)
        budget = (current.budget or Budget()).model_dump()
        found = {k: v for k, v in sent.items() if k not in budget}
        if own := {k: v for k, v in sent.items() if k in budget}:
            new = {**budget, **own}
            found["budget"] = new if any(v is not None for v in new.values()) else None
        return found


class ResumeRunBody(StrictBody):
    """The body of `POST /api/v1/runs/{id}/resume`; may be empty."""

    limits: LimitsBody = LimitsBody()


class StartRunBody(StrictBody):
    """The body of `POST /api/v1/runs`."""

    agent: str
    """Slug."""
    inputs: dict[str, Any] = {}
    conversation: int | None = None
    keep_forever: bool = False

    @property
    def digest(self) -> str:
        """Equal for bodies with equal meaning, also of releases with fewer fields."""
        later = {"keep_forever"} if not self.keep_forever else set[str]()
        shape = json.dumps(self.model_dump(exclude=later), sort_keys=True)
        return hashlib.sha256(shape.encode()).hexdigest()


class KeepRunBody(StrictBody):
    """The body of `POST /api/v1/runs/{id}/keep`; may be empty."""

    keep_forever: bool = True


class StepsWindow(BaseModel):
    """The query string of `GET /api/v1/runs/{id}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    with_steps: bool = True
    after: int = -1
    """Only steps with a higher index."""


def parse_start_run_body(request: HttpRequest) -> StartRunBody:
    return parse_body(request.body, StartRunBody)


def parse_resume_run_body(request: HttpRequest) -> ResumeRunBody:
    return parse_body(request.body or b"{}", ResumeRunBody)


def parse_keep_run_body(request: HttpRequest) -> KeepRunBody:
    return parse_body(request.body or b"{}", KeepRunBody)


def parse_body(body: bytes, kind: type[B]) -> B:
    """Parse a body; raise `ApiProblem`.

    Repeated names, NaN and infinite numbers are refused: whatever reads a body before
    us, such as a gateway, may read another value than we do.
    """
    with suppress(ValueError, RecursionError):  # reported below, in pydantic's words
        json.loads(
            body,
            object_pairs_hook=check_names,
            parse_constant=refuse_constant,
            parse_float=check_float,
        )
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(error) from None


def check_names(pairs: list[tuple[str, Any]]) -> None:
    """Raise an `ApiProblem` if an object has two values under one name."""
    counts = Counter(name for name, _value in pairs)
    if len(counts) < len(pairs):
        [(twice, _count)] = counts.most_common(1)
        raise field_problem("body", f"{twice[:80]!r} occurs twice in an object.", 400)


def refuse_constant(name: str) -> None:
    raise field_problem("body", f"{name} is not JSON.", 400)


def check_float(text: str) -> float:
    """Raise an `ApiProblem` for a number such as 1e999, which would be infinite."""
    if isinf(number := float(text)):
        raise field_problem("body", f"The number {text[:80]} is too large.", 400)
    return number


def read_idempotency_key(request: HttpRequest) -> str | None:
    """Return the `Idempotency-Key` header; None without one."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        raise field_problem(
            "Idempotency-Key", f"Must be 1 to {MAX_KEY_LENGTH} printable characters."
        )
    return key


def parse_steps_window(request: HttpRequest) -> StepsWindow:
    """Parse `steps` and `steps_after`; raise for unknown and invalid values."""
    unknown = set(request.GET) - {"steps", "steps_after"}
    if unknown:
        raise ApiProblem(422, [FieldError(name, "Unknown field.") for name in unknown])
    if request.GET.get("steps", "none") != "none":
        raise field_problem("steps", "Must be `none`.")
    after = request.GET.get("steps_after", "-1")
    if not after.removeprefix("-").isdecimal() or len(after) > 12:
        raise field_problem("steps_after", "Must be the index of a step.")
    return StepsWindow(with_steps="steps" not in request.GET, after=int(after))
