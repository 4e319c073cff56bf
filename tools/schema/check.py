"""Checks whether a JSON Schema can describe the arguments of a tool."""

import json
import re
from collections.abc import Iterator
from re import _constants as sre  # type: ignore[attr-defined]  # typed as private
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import jsonschema_rs
from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator

from tools.text.storable import is_storable

MAX_PATTERN = 300
"""Characters of a regular expression."""

MAX_DEPTH = 40
MAX_SIZE = 300_000
"""Characters of a schema as JSON."""

META_SCHEMA_VALIDATOR = jsonschema_rs.validator_for(
    dict(Draft202012Validator.META_SCHEMA), validate_formats=False, offline=True
)
"""Of draft 2020-12, without the syntax of patterns, which is checked below."""

REPEAT_OPCODES = {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}


def find_schema_flaws(schema: Any) -> list[str]:
    """Return a sentence for each reason to refuse `schema`."""
    if not isinstance(schema, dict):
        return [_('Enter a JSON object such as {"type": "object"}.')]
    if schema.get("type", "object") != "object":
        return [_('The arguments of a tool must be an object: use "type": "object".')]
    if not is_storable(schema):
        return [_("The schema has a number or a character that cannot be stored.")]
    for error in META_SCHEMA_VALIDATOR.iter_errors(schema):
        path = "/".join(map(str, error.instance_path)) or "/"
        return [
            _("Not a valid JSON Schema. At %(path)s: %(error)s.")
            % {"path": path, "error": error.message}
        ]
    if flaws := list(iter_nested_flaws(schema, 0)):
        return flaws
    if len(json.dumps(schema)) > MAX_SIZE:
        return [
            _("The schema is larger than %(size)d KB.") % {"size": MAX_SIZE // 1000}
        ]
    return []


def iter_nested_flaws(part: Any, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield _("The schema is nested too deeply.")
    elif isinstance(part, list):
        for one in part:
            yield from iter_nested_flaws(one, depth + 1)
    elif isinstance(part, dict):
        yield from iter_object_flaws(part)
        for one in part.values():
            yield from iter_nested_flaws(one, depth + 1)


def iter_object_flaws(part: dict[str, Any]) -> Iterator[str]:
    for key in ("$ref", "$dynamicRef"):
        target = part.get(key)
        if isinstance(target, str) and not target.startswith("#"):
            yield _(
                "The reference “%(target)s” leads outside the schema. Use #/$defs/…"
            ) % {"target": target}
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        yield from iter_pattern_flaws(pattern)
    patterns = part.get("patternProperties")
    if isinstance(patterns, dict):
        for one in patterns:
            yield from iter_pattern_flaws(one)


def iter_pattern_flaws(pattern: str) -> Iterator[str]:
    """Yield why a regular expression is invalid or could take exponential time."""
    if len(pattern) > MAX_PATTERN:
        yield _("Shorten the pattern to at most %(limit)d characters.") % {
            "limit": MAX_PATTERN
        }
        return
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield _("The pattern “%(pattern)s” is not valid: %(error)s.") % {
            "pattern": pattern,
            "error": error,
        }
        return
    if can_explode(tree, within=False):
        yield _(
            "The pattern “%(pattern)s” repeats a repetition, which can take "
            "exponential time. Avoid nested + and *."
        ) % {"pattern": pattern}


def can_explode(tree: Any, *, within: bool) -> bool:
    """Whether an unbounded repetition is nested in another one."""
    for node, argument in tree:
        is_open = node in REPEAT_OPCODES and argument[1] > 20
        if is_open and within:
            return True
        if any(
            can_explode(t, within=within or is_open) for t in iter_subpatterns(argument)
        ):
            return True
    return False


def iter_subpatterns(argument: Any) -> Iterator[Any]:
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for one in argument:
            if not (isinstance(one, tuple) and one and not isinstance(one[0], tuple)):
                yield from iter_subpatterns(one)
