"""JSON files: a list or lines of objects, and samples of OpenAI Evals."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from runs.services.datasets.content import clean_cell
from runs.services.datasets.file_table import (
    FileRow,
    FileTable,
    build_table,
    describe_name_twice,
    format_file_value,
    name_row_cells,
)
from runs.services.errors import DatasetFileRefused
from tools.text.parse_errors import describe_json_error
from tools.text.storable import refuse_json_constant


def parse_jsonl(text: str) -> FileTable:
    """Return the table of a file with one JSON object per line."""
    return build_table(
        FileRow(line, name_row_cells(flatten_object(found), line))
        for line, found in read_objects(text)
    )


def parse_evals(text: str) -> FileTable:
    """Return the table of samples of OpenAI Evals: `input` and `ideal`."""
    return build_table(
        FileRow(line, name_row_cells(flatten_sample(found), line))
        for line, found in read_objects(text)
    )


def looks_like_evals(text: str) -> bool:
    """Whether the first object is a sample of OpenAI Evals."""
    _line, first = next(read_objects(text), (0, {}))
    is_sample = "input" in first and "ideal" in first
    is_sample = is_sample or is_message_list(first.get("input"))
    return is_sample or isinstance(first.get("item"), dict)


def read_objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object with its line, or its number in a list; raise if it is none.

    A file whose first line is `{` alone is one object on several lines.
    """
    begin = text.lstrip()
    if begin.startswith("[") or begin.partition("\n")[0].strip() == "{":
        yield from enumerate(parse_whole(text), 1)
        return
    for line, row in enumerate(text.split("\n"), 1):
        if row.strip():
            yield line, parse_object(row, line)


class ValueTwice(ValueError):
    """An object has two values of one name, of which one would be lost."""


def refuse_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; raise `ValueTwice`."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        raise ValueTwice(
            describe_name_twice(next(n for n in names if names.count(n) > 1))
        )
    return found


def load_dataset_json(text: str) -> Any:
    """Parse strictly; raise `ValueError` or `RecursionError`."""
    return json.loads(
        text, parse_constant=refuse_json_constant, object_pairs_hook=refuse_name_twice
    )


def parse_whole(text: str) -> list[dict[str, Any]]:
    """Return the objects of a list, or the only one; raise if there is another."""
    try:
        found = load_dataset_json(text)
    except json.JSONDecodeError as error:
        line, why = error.lineno, describe_json_error(error).message
    except ValueTwice as twice:
        line, why = 1, str(twice)
    except (ValueError, RecursionError):
        line, why = 1, _("a value cannot be stored")
    else:
        objects = [found] if isinstance(found, dict) else found
        if all(isinstance(one, dict) for one in objects):
            return list(objects)
        line, why = 1, _("the list has items that are not JSON objects")
    raise DatasetFileRefused(
        _("Line %(line)d: %(problem)s.") % {"line": line, "problem": why}
    )


def parse_object(row: str, line: int) -> dict[str, Any]:
    try:
        found = load_dataset_json(row)
    except json.JSONDecodeError as error:
        why = describe_json_error(error).message
    except ValueTwice as twice:
        why = str(twice)
    except (ValueError, RecursionError):
        why = _("a value cannot be stored")
    else:
        if isinstance(found, dict):
            return found
        why = _("it is not a JSON object")
    raise DatasetFileRefused(
        _("Line %(line)d: %(problem)s.") % {"line": line, "problem": why}
    )


def flatten_object(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the cells of an object."""
    for name, value in found.items():
        yield name.strip(), format_file_value(value)


def flatten_sample(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the cells of a sample: its last message as the input, and the ideal answer.

    Alternatives are one per line; a line break within one becomes a space.
    """
    if isinstance(found.get("item"), dict):
        found = found["item"]
    for name, value in found.items():
        if name == "input" and is_message_list(value):
            yield from flatten_messages(value)
        elif name == "ideal" and isinstance(value, list):
            texts = map(format_file_value, value)
            yield name, "\n".join(" ".join(text.splitlines()) for text in texts)
        else:
            yield name.strip(), format_file_value(value)


def is_message_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and "role" in one and "content" in one for one in value
    )


def flatten_messages(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the system messages and the others; of several, each with its role."""
    system = [one for one in messages if one["role"] == "system"]
    others = [one for one in messages if one["role"] != "system"]
    if system:
        yield "system", "\n".join(format_content(one["content"]) for one in system)
    texts = [format_content(one["content"]) for one in others]
    if len(others) == 1:
        yield "input", texts[0]
        return
    roles = [format_file_value(one["role"]) for one in others]
    lines = (f"{role}: {text}" for role, text in zip(roles, texts, strict=True))
    yield "input", "\n".join(lines)


def format_content(content: Any) -> str:
    """Return the text of a message; its parts, if all are texts, one per line."""
    parts = content if isinstance(content, list) else []
    texts = [one.get("text") if isinstance(one, dict) else None for one in parts]
    found = [text for text in texts if isinstance(text, str)]
    is_text = found and len(found) == len(parts)
    return clean_cell("\n".join(found)) if is_text else format_file_value(content)
