"""Request bodies and query strings of runs."""

import hashlib
import json
from collections import Counter
from contextlib import suppress
from math import isinf
from typing import Annotated, Any, TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runs.api.problems import field_problem, validation_problem
from runs.engine.types import Budget, ExecutorOptions, ToolMode
from runs.whole_number import MAX_BIGINT

MAX_KEY_LENGTH = 200

B = TypeVar("B", bound=BaseModel)


class StrictBody(BaseModel):
    """A body or a part of one; unknown fields are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EmptyBody(StrictBody):
    """No fields."""


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


class ToolModeBody(ToolMode):
    """How the calls of a run are answered."""

    model_config = ConfigDict(strict=True)

    recording: Annotated[int, Field(ge=1, le=MAX_BIGINT)] | None = None
    """The run whose calls are replayed."""


class StartRunBody(StrictBody):
    """The body of `POST /api/v1/runs`."""

    agent: str
    """Slug."""
    version: Annotated[int, Field(ge=1, le=MAX_BIGINT)] | None = None
    """Number of a published version; null for the newest."""
    inputs: dict[str, Any] = {}
    conversation: Annotated[int, Field(ge=1, le=MAX_BIGINT)] | None = None
    """Id of one of your conversations with the agent."""
    keep_forever: bool = False
    tool_mode: ToolModeBody | None = None
    """Null for real calls."""

    @property
    def mode(self) -> ToolMode | None:
        sent = self.tool_mode
        return ToolMode.model_validate(sent.model_dump()) if sent else None

    @property
    def digest(self) -> str:
        """Equal for bodies with equal meaning, also of releases with fewer fields."""
        added = ("keep_forever", "tool_mode", "version")
        later = {name for name in added if not getattr(self, name)}
        shape = json.dumps(self.model_dump(exclude=later), sort_keys=True)
        return hashlib.sha256(shape.encode()).hexdigest()


class KeepRunBody(StrictBody):
    """The body of `POST /api/v1/runs/{id}/keep`; may be empty."""

    keep_forever: bool = True


def parse_body(body: bytes, kind: type[B]) -> B:
    """Parse a body; raise `ApiProblem`."""
    refuse_other_encodings(body)
    refuse_ambiguous_json(body)
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(error) from None


def refuse_other_encodings(body: bytes) -> None:
    """Raise an `ApiProblem` for UTF-16, Latin-1, compressed bodies and the like."""
    try:
        body.decode()
    except UnicodeDecodeError:
        message = "The request body is not UTF-8. Send JSON in UTF-8, uncompressed."
        raise field_problem("body", message, 400) from None


def refuse_ambiguous_json(body: bytes) -> None:
    """Raise an `ApiProblem` for repeated names, NaN and infinite numbers.

    Whatever reads a body before us, such as a gateway, may read another value than we
    do. Invalid JSON passes: the parser explains it better.
    """
    with suppress(ValueError, RecursionError):
        json.loads(
            body,
            object_pairs_hook=check_names,
            parse_constant=refuse_constant,
            parse_float=check_float,
        )


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
