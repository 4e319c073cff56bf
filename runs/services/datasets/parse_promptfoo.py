"""Tests of a promptfoo configuration, in YAML."""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, NamedTuple

import yaml
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from runs.services.datasets.file_table import (
    MAX_FILE_ROWS,
    MAX_HEADING_CHARS,
    FileRow,
    FileTable,
    build_table,
    describe_name_twice,
    format_file_value,
)
from runs.services.errors import DatasetFileRefused
from tools.text.json_yaml import load_json_yaml
from tools.text.parse_errors import describe_text_error
from tools.text.storable import iter_values

MAX_YAML_CHARS = 2_000_000
"""YAML takes a second per million characters."""
MAX_YAML_VALUES = 200_000
EQUALS = ("equals", "is-equal")
MERGE_KEY = "<<"
OTHER_FILE = "file://"


def parse_promptfoo(text: str) -> FileTable:
    """Return the table of the tests: variables, description and assertions.

    As in promptfoo, lists of values stand for each combination.
    """
    found = merge_keys(load_yaml(text))
    tests, shared = find_tests(found), find_shared(found)
    rows = (
        row
        for number, test in enumerate(tests, 1)
        for row in expand_test(test, shared, number)
    )
    return build_table(islice(rows, MAX_FILE_ROWS + 1))


def load_yaml(text: str) -> Any:
    """Return the parsed text; raise `DatasetFileRefused`."""
    if len(text) > MAX_YAML_CHARS:
        raise DatasetFileRefused(
            _("The YAML file is too long. Split it, or convert it to JSONL.")
        )
    try:
        found = load_json_yaml(text)
    except yaml.YAMLError as error:
        place, problem = describe_text_error(text, error)
        raise DatasetFileRefused(
            _("The YAML cannot be read, %(position)s: %(problem)s.")
            % {"position": place, "problem": problem}
        ) from None
    except (RecursionError, ValueError):
        raise DatasetFileRefused(
            _("The YAML cannot be read: it is nested too deeply.")
        ) from None
    # Aliases count each time they are used: they can expand a small file to a huge one,
    # or to one without an end.
    if any(True for _ in islice(iter_values(found), MAX_YAML_VALUES, None)):
        raise DatasetFileRefused(
            _("The YAML file has more than %(limit)s values. Split it.")
            % {"limit": number_format(MAX_YAML_VALUES, force_grouping=True)}
        )
    return found


def merge_keys(found: Any) -> Any:
    """Return an object with what its merge key `<<` adds; the object's own wins."""
    if not isinstance(found, dict) or MERGE_KEY not in found:
        return found
    sources = found[MERGE_KEY]
    merged: dict[Any, Any] = {}
    for one in reversed(sources if isinstance(sources, list) else [sources]):
        if not isinstance(one, dict):
            raise DatasetFileRefused(
                _("A merge key (<<) in the file does not name an object.")
            )
        merged |= merge_keys(one)
    return merged | {name: one for name, one in found.items() if name != MERGE_KEY}


def is_other_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(OTHER_FILE)


def refuse_other_file(name: str, value: Any) -> None:
    """Raise `DatasetFileRefused` if a value is in another file."""
    if is_other_file(value):
        raise DatasetFileRefused(
            _("“%(name)s” is in another file, “%(file)s”. Write it into this one.")
            % {"name": name[:MAX_HEADING_CHARS], "file": value[:200]}
        )


def find_tests(found: Any) -> list[Any]:
    """Return the tests; raise `DatasetFileRefused`."""
    config = found if isinstance(found, dict) else {}
    tests = config.get("tests") if config else found
    items = tests if isinstance(tests, list) else []
    files = [tests] if isinstance(tests, str) else [*filter(is_other_file, items)]
    if files:
        raise DatasetFileRefused(
            _("The tests are in another file, “%(name)s”. Import that one.")
            % {"name": files[0][:200]}
        )
    if not items:
        raise DatasetFileRefused(
            _("The file has no list under “tests”, where promptfoo lists its tests.")
        )
    return items


class SharedParts(NamedTuple):
    """What all tests have."""

    variables: dict[str, Any]
    assertions: dict[str, str]
    """Their values by column."""


def find_shared(found: Any) -> SharedParts:
    """Return the variables and assertions of `defaultTest`."""
    default = merge_keys(found.get("defaultTest")) if isinstance(found, dict) else None
    refuse_other_file("defaultTest", default)
    parts = default if isinstance(default, dict) else {}
    variables = merge_keys(parts.get("vars"))
    refuse_other_file("vars", variables)
    return SharedParts(
        variables if isinstance(variables, dict) else {}, join_assertions(parts)
    )


def expand_test(test: Any, shared: SharedParts, number: int) -> Iterator[FileRow]:
    """Yield a row for each combination of a test's values."""
    test = merge_keys(test)
    own = merge_keys(test.get("vars", {})) if isinstance(test, dict) else None
    refuse_other_file("vars", own)
    if not isinstance(own, dict):
        raise DatasetFileRefused(
            _("Test %(number)d is not an object with variables under “vars”.")
            % {"number": number}
        )
    variables = {**shared.variables, **own}
    choices = [
        value if isinstance(value, list) else [value] for value in variables.values()
    ]
    others = dict(flatten_test(test, shared.assertions))
    if twice := next((name for name in others if name in variables), None):
        raise DatasetFileRefused(
            _("Test %(number)d: %(problem)s.")
            % {"number": number, "problem": describe_name_twice(twice)}
        )
    for values in product(*choices):
        cells = {
            str(name): format_file_value(value)
            for name, value in zip(variables, values, strict=True)
        }
        for name in cells:
            refuse_other_file(name, cells[name])
        refuse_other_file("expected", others.get("expected"))
        yield FileRow(number, cells | others)


def flatten_test(
    test: dict[str, Any], shared: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the description, the expected answer, and other assertions by type.

    Those that all tests share come first, unless the test turns them off.
    """
    if test.get("description"):
        yield "description", format_file_value(test["description"])
    own = join_assertions(test)
    options = test.get("options")
    if isinstance(options, dict) and options.get("disableDefaultAsserts") is True:
        shared = {}
    for name in {**shared, **own}:
        yield name, "\n".join(texts[name] for texts in (shared, own) if name in texts)


def join_assertions(test: dict[str, Any]) -> dict[str, str]:
    """Return the values of the assertions by column, one per line."""
    assertions = test.get("assert") or []
    texts: dict[str, list[str]] = {}
    for one in assertions if isinstance(assertions, list) else [assertions]:
        name, value = read_assertion(merge_keys(one))
        texts.setdefault(name, []).append(format_file_value(value))
    return {name: "\n".join(found) for name, found in texts.items()}


def read_assertion(one: Any) -> tuple[str, Any]:
    """Return its column and its value; without one, what else it says.

    `is-json` alone is true, and a set has its assertions.
    """
    if not isinstance(one, dict) or not one.get("type"):
        return "assert", one
    name = f"assert {one['type']}"
    if "value" in one:
        return "expected" if one["type"] in EQUALS else name, one["value"]
    return name, {key: part for key, part in one.items() if key != "type"} or True
