"""What one agent may see of a tool otherwise than other agents do."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.credentials import host_matches
from tools.models import Tool
from tools.spec import AtExpiry, Effect, OnError

N = TypeVar("N", int, float)

EFFECTS_BY_STRICTNESS: tuple[Effect, ...] = ("read", "idempotent", "side_effect")
"""What a call may change, the least careful of it first."""

LIMIT_FIELDS = ("timeout", "retries", "calls_per_run", "output_limit")

NO_HOSTS = ("",)
"""Hosts of a call that may go to none; an empty list would mean all."""


class ToolOverrides(BaseModel):
    """The fields that can differ; None is as the tool says.

    A limit of the tool stays: an agent can only make calls fewer and shorter, tries
    fewer, results shorter, and hosts fewer. A call may count as one that changes more
    than the tool says, never as one that changes less. Whether a person is asked is the
    policy's.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Annotated[str, Field(max_length=20_000)] | None = None
    effect: Effect | None = None
    timeout: Annotated[float, Field(ge=0.1, le=3600)] | None = None
    retries: Annotated[int, Field(ge=0, le=5)] | None = None
    return_direct: bool | None = None
    on_error: OnError | None = None
    calls_per_run: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    output_limit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    approval_hours: Annotated[float, Field(ge=0, le=8760)] | None = None
    """0: it never expires."""
    at_expiry: AtExpiry | None = None
    hosts: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = ()

    def dump_set_fields(self) -> dict[str, Any]:
        """Return what differs, without what can only be stricter than the tool."""
        narrowing = {*LIMIT_FIELDS, "effect", "hosts"}
        return self.model_dump(exclude_none=True, exclude=narrowing)


def parse_overrides(stored: dict[str, Any] | None) -> ToolOverrides:
    """Return what is stored; a field that makes no sense counts for nothing."""
    given = dict(stored or {})
    try:
        return ToolOverrides.model_validate(given)
    except ValidationError as error:
        for one in error.errors():
            given.pop(str(one["loc"][0]), None)
        return ToolOverrides.model_validate(given)


def find_overrides_flaw(given: dict[str, Any]) -> str | None:
    """Return a sentence for the first field that makes no sense, or None."""
    try:
        ToolOverrides.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}."
    return None


class Loosening(NamedTuple):
    """A field in which an agent would be less strict than its tool."""

    field: str
    message: str


def find_loosenings(own: ToolOverrides, tool: Tool) -> Iterator[Loosening]:
    """Yield what `tool` does not leave to an agent."""
    if own.effect and stricter_effect(tool.effect, own.effect) != own.effect:
        text = f"The tool's own effect is {tool.effect}; an agent can only be stricter."
        yield Loosening("effect", text)
    for name in LIMIT_FIELDS:
        limit, mine = getattr(tool, name), getattr(own, name)
        if limit is not None and mine is not None and mine > limit:
            yield Loosening(name, f"The tool's own limit is {limit:g}.")


def get_effective_overrides(stored: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """Return what is stored without what `tool` does not leave to an agent."""
    loose = {one.field for one in find_loosenings(parse_overrides(stored), tool)}
    return {name: value for name, value in stored.items() if name not in loose}


def stricter_effect(one: str, other: Effect | None) -> Effect:
    """Return the effect that allows less without a person."""
    return EFFECTS_BY_STRICTNESS[
        max(EFFECTS_BY_STRICTNESS.index(one), EFFECTS_BY_STRICTNESS.index(other or one))
    ]


def smaller_limit(one: N | None, other: N | None) -> N | None:
    """Return the tighter of two limits; None means no limit."""
    known = [limit for limit in (one, other) if limit is not None]
    return min(known) if known else None


def intersect_hosts(tools: Sequence[str], agents: Sequence[str]) -> list[str]:
    """Return the hosts that both allow; an empty list means no limit."""
    if not agents or not tools:
        return list(agents or tools)
    both = [
        host for host in agents if any(host_matches(one, host.lower()) for one in tools)
    ]
    return both or list(NO_HOSTS)
