"""Where a text stops being YAML or JSON, in words for whoever wrote it."""

import json
import re
from typing import NamedTuple

import yaml

JSON_LIKE = re.compile(r'\s*[\[{]\s*"')
OPENING_MISTAKES = (
    ("quoted scalar", "the quotation mark that opens here is not closed"),
    ("flow sequence", "the list that opens here lacks a comma between items, or its ]"),
    ("flow mapping", "the object that opens here lacks a comma in it, or its }"),
)
"""What the YAML parser was in when the end came, told where that began."""
QUOTE_HINT = "put the text in quotation marks"
YAML_MESSAGES = (
    (
        "escape character",
        "a backslash in double quotes cannot stand before this; write two, or use "
        "single quotes",
    ),
    (
        "mapping values are not allowed",
        "a colon cannot stand here; check the indentation, or put a text that holds a "
        "colon in quotation marks",
    ),
    (
        "cannot start any token",
        f"nothing may begin with this character; {QUOTE_HINT}, and indent with spaces",
    ),
    ("could not find expected ':'", "a colon is missing after the name"),
    (
        "sequence entries are not allowed",
        "an item of a list (-) must begin on a line of its own",
    ),
    ("alphabetic or numeric", f"* and & have a meaning of their own; {QUOTE_HINT}"),
    ("undefined alias", f"* refers to a part, and none has this name; {QUOTE_HINT}"),
    ("comment or", "after | or > the text begins on the next line"),
    ("node content", "a value is missing here, or a bracket or comma is one too many"),
    ("<block end>", "this line is not indented as those it belongs to"),
    ("expected key", "this line is not indented as those it belongs to"),
    ("expected '-' indicator", "this line is not indented as those it belongs to"),
    ("another document", "a second document begins (---); give one"),
    ("constructor for the tag", f"! sets a type that is not known; {QUOTE_HINT}"),
    ("unhashable key", "a name cannot be a list or an object"),
    ("second occurrence", "& gives a name that is given already"),
)
"""Parts of what the YAML parsers say, the more telling first."""
JSON_MESSAGES = (
    (
        "Expecting property name",
        "a name in double quotes is missing, or a comma is one too many",
    ),
    ("Expecting ','", "a comma or a closing bracket is missing"),
    ("Expecting ':'", "a colon is missing after the name"),
    (
        "Expecting value",
        "a value is missing or lacks its quotation marks, or a comma is one too many",
    ),
    ("trailing comma", "a comma is one too many"),
    ("Unterminated string", "the quotation mark that opens here is not closed"),
    (
        "control character",
        r"a text holds a line end or a tab; write \n or \t, or close it before",
    ),
    ("escape", "a backslash cannot stand before this; write two"),
    ("Extra data", "the JSON has ended before this"),
)
NOT_JSON = "This is not JSON."
"""Begins what a form says of such a text; `json_flaw` goes on."""
DUPLICATE_KEY = "is there twice"
"""What our own reader says of a name, which the parsers let pass."""
FALLBACK_MESSAGE = (
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
    place = f"line {error.lineno}, column {error.colno}"
    return ParseProblem(place, translate_parser_message(error.msg, JSON_MESSAGES))


def find_json_error(text: str) -> str:
    """Return the first mistake in JSON as a sentence; nothing where there is none."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place, told = describe_json_error(error)
        return f"{place[0].upper()}{place[1:]}: {told}."
    except (ValueError, RecursionError):
        return "It is nested too deeply, or has a number that is too long."
    return ""


def describe_yaml_error(error: yaml.MarkedYAMLError) -> ParseProblem:
    """Return the flaw, and where it begins, which the parser meets only later."""
    problem, context = str(error.problem or ""), str(error.context or "")
    mark, told = error.problem_mark, translate_parser_message(problem, YAML_MESSAGES)
    if problem.endswith(DUPLICATE_KEY):
        told = problem
    elif "escape character" not in problem:
        for part, words in OPENING_MISTAKES:
            if part in context:
                mark, told = error.context_mark or mark, words
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the text"
    return ParseProblem(place, told)


def describe_character_error(text: str, position: int | None) -> ParseProblem:
    """Return the flaw of a character that no document may hold."""
    told = "a control character stands here; take it out"
    if position is None or position >= len(text):
        return ParseProblem("the text", "it holds a control character; take it out")
    before = text[:position]
    column = position - before.rfind("\n")
    return ParseProblem(f"line {before.count(chr(10)) + 1}, column {column}", told)


def translate_parser_message(problem: str, words: tuple[tuple[str, str], ...]) -> str:
    """Return our words for a parser's."""
    return next((told for part, told in words if part in problem), FALLBACK_MESSAGE)
