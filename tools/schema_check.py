"""Whether a JSON Schema can describe the arguments of a tool."""

import json
import re
from collections.abc import Iterator
from re import _constants as sre  # type: ignore[attr-defined]  # typed as private
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from jsonschema.exceptions import SchemaError

from tools.metaschema import check_is_schema
from tools.storable import is_storable

MAX_PATTERN = 300
"""Characters of a regular expression."""

MAX_DEPTH = 40
MAX_SIZE = 300_000
"""Characters of a schema as JSON; a form takes no more, and no model reads that."""

REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}


def flaws_of_schema(schema: Any) -> list[str]:
    """Return a sentence for each reason not to take `schema`."""
    if not isinstance(schema, dict):
        return ['A schema is a JSON object, such as {"type": "object"}.']
    if schema.get("type", "object") != "object":
        return ['The arguments of a tool are an object: write "type": "object".']
    if not is_storable(schema):
        return ["It has a number or a character that cannot be stored."]
    try:
        check_is_schema(schema)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        return [f"This is no JSON Schema. At {place}: {error.message}."]
    except RecursionError:
        return ["The schema is nested too deeply."]
    if flaws := list(flaws_within(schema, 0)):
        return flaws
    if len(json.dumps(schema)) > MAX_SIZE:
        return [f"The schema is larger than {MAX_SIZE // 1000} KB."]
    return []


def flaws_within(part: Any, depth: int) -> Iterator[str]:
    """Yield what is wrong with references and patterns at any depth."""
    if depth > MAX_DEPTH:
        yield "The schema is nested too deeply."
    elif isinstance(part, list):
        for one in part:
            yield from flaws_within(one, depth + 1)
    elif isinstance(part, dict):
        yield from flaws_of_object(part)
        for one in part.values():
            yield from flaws_within(one, depth + 1)


def flaws_of_object(part: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one schema object."""
    for key in ("$ref", "$dynamicRef"):
        target = part.get(key)
        if isinstance(target, str) and not target.startswith("#"):
            yield f"The reference {target!r} leads out of the schema; use #/$defs/…."
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        yield from flaws_of_pattern(pattern)
    patterns = part.get("patternProperties")
    if isinstance(patterns, dict):
        for one in patterns:
            yield from flaws_of_pattern(one)


def flaws_of_pattern(pattern: str) -> Iterator[str]:
    """Yield why a regular expression could take for ever."""
    if len(pattern) > MAX_PATTERN:
        yield f"A pattern has at most {MAX_PATTERN} characters."
        return
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield f"The pattern {pattern!r} cannot be read: {error}."
        return
    if can_explode(tree, within=False):
        yield (
            f"The pattern {pattern!r} repeats a repetition, which can take for ever. "
            "Write it without nesting + or *."
        )


def can_explode(tree: Any, *, within: bool) -> bool:
    """Whether an open repetition stands inside another one."""
    for node, argument in tree:
        is_open = node in REPEATS and argument[1] > 20
        if is_open and within:
            return True
        if any(can_explode(t, within=within or is_open) for t in trees_in(argument)):
            return True
    return False


def trees_in(argument: Any) -> Iterator[Any]:
    """Yield the patterns inside the argument of a node."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for one in argument:
            if not (isinstance(one, tuple) and one and not isinstance(one[0], tuple)):
                yield from trees_in(one)
