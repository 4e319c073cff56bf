"""What an example consists of: its validation, and its cells as text."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from runs.engine.types import FrozenModel
from runs.models import Example
from runs.services.errors import ExampleRefused, FieldError
from tools.text.storable import is_storable, replace_unstorable
from tools.text.translatable import translatable

MAX_CELL_CHARS = 100_000
MAX_INPUTS = 50
"""Variables of one example."""
MAX_CALLS = 200
"""Expected calls of one example."""
MAX_TAGS = 20
MAX_NAME_CHARS = 100
"""Of a variable or a tool."""
MAX_TAG_CHARS = 40
DEFAULT_INPUT = "input"
"""The variable of an agent that has only one."""
INPUT_FIELD = "input:"
"""Begins the field name of an input: `input:city`."""
TAG_SEPARATORS = re.compile(r"[,;，；\n]")


class StoredCall(FrozenModel):
    """An expected call as stored; without arguments, any are expected."""

    tool: str
    tool_input: dict[str, Any] | None = None


class ExampleContent(FrozenModel):
    """What a person writes in an example."""

    inputs: dict[str, str] = {}
    expected_answer: str = ""
    expected_calls: tuple[StoredCall, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, example: Example) -> "ExampleContent":
        return cls(
            inputs=example.inputs,
            expected_answer=example.expected_answer,
            expected_calls=tuple(
                StoredCall.model_validate(call) for call in example.expected_calls
            ),
            tags=tuple(example.tags),
        )

    def columns(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "input_digest": compute_input_digest(self.inputs),
            "expected_answer": self.expected_answer,
            "expected_calls": [call.model_dump() for call in self.expected_calls],
            "tags": list(self.tags),
            "search_text": "\n".join(self._texts()).lower(),
        }

    def _texts(self) -> Iterator[str]:
        yield from self.inputs.values()
        yield self.expected_answer
        yield format_expected_calls(self.expected_calls)
        yield from self.tags


def compute_input_digest(inputs: dict[str, str]) -> str:
    """Return the same text for equal inputs, spaces around them aside."""
    plain = {name: text.strip() for name, text in inputs.items()}
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def get_cell_text(content: ExampleContent, field: str) -> str:
    if field.startswith(INPUT_FIELD):
        return content.inputs.get(field.removeprefix(INPUT_FIELD), "")
    if field == "calls":
        return format_expected_calls(content.expected_calls)
    if field == "tags":
        return ", ".join(content.tags)
    return content.expected_answer


def set_cell_text(content: ExampleContent, field: str, text: str) -> ExampleContent:
    """Return the content with one cell replaced; raise `ExampleRefused`."""
    text = clean_cell(text)
    if problem := find_cell_problem(text):
        raise ExampleRefused([FieldError(field, problem)])
    if field.startswith(INPUT_FIELD):
        inputs = {**content.inputs, field.removeprefix(INPUT_FIELD): text}
        kept = {name: value for name, value in inputs.items() if value.strip()}
        return content.model_copy(update={"inputs": kept})
    if field == "calls":
        return content.model_copy(update={"expected_calls": parse_calls_cell(text)})
    if field == "tags":
        return content.model_copy(update={"tags": parse_tags_cell(text)})
    return content.model_copy(update={"expected_answer": text})


def clean_cell(text: str) -> str:
    """Return a text with plain line ends, and without what cannot be stored."""
    return replace_unstorable(text.replace("\r\n", "\n").replace("\r", "\n"))


def find_cell_problem(text: str) -> str:
    """Return why a cell is too long; empty if it is not."""
    if len(text) <= MAX_CELL_CHARS:
        return ""
    return _("The text has %(count)s characters, at most %(limit)s are allowed.") % {
        "count": number_format(len(text), force_grouping=True),
        "limit": number_format(MAX_CELL_CHARS, force_grouping=True),
    }


def parse_calls_cell(text: str) -> tuple[StoredCall, ...]:
    """Return the calls of a cell, one per line; raise `ExampleRefused`.

    A line is `tool {"argument": 1}`, or one or more names separated by commas, which
    expect any arguments. A JSON list of names or calls, as files have it, is read, too.
    """
    calls: list[StoredCall] = []
    listed = load_json_list(text)
    for number, item in enumerate(text.split("\n") if listed is None else listed, 1):
        try:
            calls += parse_calls_line(item) if listed is None else [parse_call(item)]
        except ValueError as error:
            message = _("Expected calls, line %(line)d: %(problem)s") % {
                "line": number,
                "problem": error,
            }
            raise ExampleRefused([FieldError("calls", message)]) from None
    if len(calls) > MAX_CALLS:
        message = _("Enter at most %(limit)d calls.") % {"limit": MAX_CALLS}
        raise ExampleRefused([FieldError("calls", message)])
    return tuple(calls)


def load_json_list(text: str) -> list[Any] | None:
    """Return the list that a cell of a file holds as JSON; None for other text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and is_storable(found) else None


def parse_call(item: Any) -> StoredCall:
    """Return the call of an item of a JSON list; raise `ValueError` with a sentence."""
    if isinstance(item, str):
        return StoredCall(tool=require_tool_name(item.strip()))
    call = item if isinstance(item, dict) else {}
    name = call.get("tool") or call.get("name")
    tool = require_tool_name(name.strip() if isinstance(name, str) else "")
    given = call.get("tool_input", call.get("arguments"))
    if given is not None and not isinstance(given, str):
        given = json.dumps(given)
    return StoredCall(
        tool=tool, tool_input=None if given is None else parse_arguments(given)
    )


def parse_calls_line(line: str) -> list[StoredCall]:
    """Return the calls of a line; raise `ValueError` with a sentence."""
    names, brace, rest = line.strip().partition("{")
    if brace:
        tool_input = parse_arguments(brace + rest)
        tool = require_tool_name(names.strip())
        return [StoredCall(tool=tool, tool_input=tool_input)]
    return [
        StoredCall(tool=require_tool_name(name))
        for part in re.split("[,，]", names)
        if (name := part.strip())
    ]


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the JSON object; raise `ValueError` with a sentence."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not is_storable(found):
        raise ValueError(
            _('write the arguments as a JSON object, for example {"id": 5}.')
        )
    return found


def require_tool_name(name: str) -> str:
    if not name:
        raise ValueError(_("begin with the name of the tool."))
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(
            _("the name of the tool is longer than %(limit)d characters.")
            % {"limit": MAX_NAME_CHARS}
        )
    return name


def format_expected_calls(calls: Iterable[StoredCall]) -> str:
    """Return the calls as `parse_calls_cell` reads them."""
    return "\n".join(
        call.tool
        if call.tool_input is None
        else f"{call.tool} {json.dumps(call.tool_input, ensure_ascii=False)}"
        for call in calls
    )


def parse_tags_cell(text: str) -> tuple[str, ...]:
    """Return the tags, each once; raise `ExampleRefused`.

    They are separated by commas, or a JSON list of texts and numbers, as files
    have it.
    """
    parts = load_json_list(text)
    if parts is None or not all(type(one) in (str, int, float) for one in parts):
        parts = TAG_SEPARATORS.split(text)
    found = dict.fromkeys(tag for part in parts if (tag := str(part).strip()))
    if problem := find_tags_problem(list(found)):
        raise ExampleRefused([FieldError("tags", problem)])
    return tuple(found)


def find_tags_problem(tags: list[str]) -> str:
    """Return why there are too many tags, or one is too long; empty if neither."""
    if len(tags) > MAX_TAGS:
        return _("Enter at most %(limit)d tags.") % {"limit": MAX_TAGS}
    if any(len(tag) > MAX_TAG_CHARS for tag in tags):
        return _("A tag has at most %(limit)d characters.") % {"limit": MAX_TAG_CHARS}
    return ""


def require_inputs(content: ExampleContent) -> None:
    """Raise `ExampleRefused` if no input has a value, or there are too many."""
    if not content.inputs:
        raise ExampleRefused([FieldError("inputs", translatable("Enter an input."))])
    if len(content.inputs) > MAX_INPUTS:
        message = translatable(
            "An example has at most %(limit)s inputs.", limit=MAX_INPUTS
        )
        raise ExampleRefused([FieldError("inputs", message)])


def find_name_problems(content: ExampleContent) -> list[FieldError]:
    """Return the tags and tools that a cell of a table could not hold."""
    errors = [
        FieldError(
            "tags",
            _(
                "A tag has no commas, semicolons or line breaks, and no spaces at its "
                "ends: %(tag)s."
            )
            % {"tag": repr(tag)},
        )
        for tag in content.tags
        if parse_tags_cell(tag) != (tag,)
    ]
    return errors + [
        FieldError(
            "expected_calls",
            _(
                "The name of a tool has no commas, braces or line breaks, and no "
                "spaces at its ends: %(tool)s."
            )
            % {"tool": repr(call.tool)},
        )
        for call in content.expected_calls
        if re.split(r"[,，{\n]", call.tool.strip()) != [call.tool]
    ]
