"""Values in source code that is parsed and never run."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Name:
    """A name or an attribute, such as `workflow.input_as_text`."""

    path: str


@dataclass(frozen=True)
class Template:
    """A text with values in it: an f-string or a template literal."""

    parts: "tuple[str | Name, ...]"


@dataclass(frozen=True)
class Call:
    """A call with its arguments, or an object with its fields."""

    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """By name; the fields of a first argument that is an object."""
    positional: tuple[Any, ...] = ()


MAX_CALLS = 1_000
"""Assignments of calls that are read from a file."""
