"""Where a text stops being YAML or JSON, in words for whoever wrote it."""

import json
import re
from typing import NamedTuple

import yaml
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

JSON_LIKE = re.compile(r'\s*[\[{]\s*"')
OPENING_MISTAKES = (
    ("quoted scalar", gettext_lazy("this quotation mark is not closed")),
    (
        "flow sequence",
        gettext_lazy("the list that begins here is missing a comma or its ]"),
    ),
    (
        "flow mapping",
        gettext_lazy("the object that begins here is missing a comma or its }"),
    ),
)
"""What the YAML parser was in when the end came, with the place where that began."""
YAML_MESSAGES = (
    (
        "escape character",
        gettext_lazy(
            "in double quotes, a backslash is not allowed before this "
            "character; write two, or use single quotes"
        ),
    ),
    (
        "mapping values are not allowed",
        gettext_lazy(
            "a colon is not allowed here; check the indentation, or put "
            "text that contains a colon in quotation marks"
        ),
    ),
    (
        "cannot start any token",
        gettext_lazy(
            "a value cannot begin with this character; put the text in "
            "quotation marks, and indent with spaces"
        ),
    ),
    ("could not find expected ':'", gettext_lazy("a colon is missing after the name")),
    (
        "sequence entries are not allowed",
        gettext_lazy("a list item (-) must begin on its own line"),
    ),
    (
        "alphabetic or numeric",
        gettext_lazy(
            "* and & have a special meaning in YAML; put the text in quotation marks"
        ),
    ),
    (
        "undefined alias",
        gettext_lazy(
            "there is no anchor with the name after *; put the text in quotation marks"
        ),
    ),
    ("comment or", gettext_lazy("text after | or > must begin on the next line")),
    (
        "node content",
        gettext_lazy("a value is missing here, or there is an extra bracket or comma"),
    ),
    (
        "<block end>",
        gettext_lazy(
            "the indentation of this line does not match the lines it belongs to"
        ),
    ),
    (
        "expected key",
        gettext_lazy(
            "the indentation of this line does not match the lines it belongs to"
        ),
    ),
    (
        "expected '-' indicator",
        gettext_lazy(
            "the indentation of this line does not match the lines it belongs to"
        ),
    ),
    (
        "another document",
        gettext_lazy("a second document begins here (---); only one is allowed"),
    ),
    (
        "constructor for the tag",
        gettext_lazy(
            "the type after ! is not supported; put the text in quotation marks"
        ),
    ),
    ("unhashable key", gettext_lazy("a name cannot be a list or an object")),
    ("second occurrence", gettext_lazy("the anchor after & is defined twice")),
)
"""Parts of what the YAML parsers say, the more specific first."""
JSON_MESSAGES = (
    (
        "Expecting property name",
        gettext_lazy("a name in double quotes is missing, or there is an extra comma"),
    ),
    ("Expecting ','", gettext_lazy("a comma or a closing bracket is missing")),
    ("Expecting ':'", gettext_lazy("a colon is missing after the name")),
    (
        "Expecting value",
        gettext_lazy(
            "a value is missing or not in quotation marks, or there is an extra comma"
        ),
    ),
    ("trailing comma", gettext_lazy("there is an extra comma")),
    (
        "Unterminated string",
        gettext_lazy("this quotation mark is not closed"),
    ),
    (
        "control character",
        gettext_lazy(
            "a string contains a line break or a tab; write \\n or \\t, or "
            "close it first"
        ),
    ),
    (
        "escape",
        gettext_lazy("a backslash is not allowed before this character; write two"),
    ),
    ("Extra data", gettext_lazy("the JSON has ended before this")),
)
NOT_JSON = gettext_lazy("Not valid JSON.")
"""Begins what a form says of such a text; `json_flaw` continues."""
DUPLICATE_KEY = "is there twice"
"""Ends the message of our own YAML reader about a name, which the parsers let pass."""
FALLBACK_MESSAGE = gettext_lazy(
    "it cannot be read from here on; check quotation marks, brackets and indents"
)


class ParseProblem(NamedTuple):
    """A place such as `line 3, column 5`, and a clause on what is wrong there."""

    position: str
    message: str


def describe_text_error(text: str, error: yaml.YAMLError) -> ParseProblem:
    """Return what `error` means for who wrote `text`; of JSON by the rules of JSON."""
    if JSON_LIKE.match(text):
        try:
            json.loads(text)
        except json.JSONDecodeError as flaw:
            return describe_json_error(flaw)
        except (RecursionError, ValueError):
            pass
    if isinstance(error, yaml.MarkedYAMLError):
        return describe_yaml_error(error)
    return describe_character_error(text, getattr(error, "position", None))


def describe_json_error(error: json.JSONDecodeError) -> ParseProblem:
    """Return what Python's reader of JSON found, in our words."""
    return ParseProblem(
        describe_position(error.lineno, error.colno),
        translate_parser_message(error.msg, JSON_MESSAGES),
    )


def describe_position(line: int, column: int) -> str:
    """Return a place in a text; both numbers begin at 1."""
    return _("line %(line)d, column %(column)d") % {"line": line, "column": column}


def find_json_error(text: str) -> str:
    """Return the first mistake in JSON as a sentence; nothing if there is none."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _("Line %(line)d, column %(column)d: %(problem)s.") % {
            "line": error.lineno,
            "column": error.colno,
            "problem": describe_json_error(error).message,
        }
    except (ValueError, RecursionError):
        return _("It is nested too deeply, or has a number that is too long.")
    return ""


def describe_yaml_error(error: yaml.MarkedYAMLError) -> ParseProblem:
    """Return the flaw, and where it begins, which the parser meets only later."""
    problem, context = str(error.problem or ""), str(error.context or "")
    mark, text = error.problem_mark, translate_parser_message(problem, YAML_MESSAGES)
    if problem.endswith(DUPLICATE_KEY):
        name = problem.removesuffix(DUPLICATE_KEY).strip()
        text = _("%(name)s occurs twice") % {"name": name}
    elif "escape character" not in problem:
        for part, words in OPENING_MISTAKES:
            if part in context:
                mark, text = error.context_mark or mark, str(words)
    if mark is None:
        return ParseProblem(_("the text"), text)
    return ParseProblem(describe_position(mark.line + 1, mark.column + 1), text)


def describe_character_error(text: str, position: int | None) -> ParseProblem:
    """Return the flaw of a character that no document may hold."""
    if position is None or position >= len(text):
        return ParseProblem(
            _("the text"), _("it contains a control character; remove it")
        )
    before = text[:position]
    column = position - before.rfind("\n")
    return ParseProblem(
        describe_position(before.count("\n") + 1, column),
        _("there is a control character here; remove it"),
    )


def translate_parser_message(
    problem: str, words: tuple[tuple[str, Promise], ...]
) -> str:
    found = next((text for part, text in words if part in problem), FALLBACK_MESSAGE)
    return str(found)
