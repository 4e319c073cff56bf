"""The first steps of parsing a reply: reasoning, code fences, quotes, strict JSON.

Replies are hostile: everything here takes linear time and raises only `ValueError`.
"""

import json
import re
from math import isinf
from typing import Any, NamedTuple

from runs.engine.parsing.clean import MAX_DEPTH, MAX_DIGITS, clean_json

_THINK_OPEN = re.compile(r"[\s\ufeff\u200b]*+<think(?:ing)?(?:\s[^<>]{0,200})?>", re.I)
_THINK_TAG = re.compile(r"<think(?:ing)?[\s>]", re.I)
_THINK_CLOSE = re.compile(r"</think(?:ing)?\s{0,9}>", re.I)
_THINK_CLOSES = re.compile(rf"(?:{_THINK_CLOSE.pattern}\s*+)++", re.I)
_SPACE = re.compile(r"\s*+")
_FENCE = re.compile(r"(`{3,}+|~{3,}+)([\w+#.-]*+)[^\S\n]*+(?:\n|(?=.))")
_QUOTED = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_TYPOGRAPHIC = {"“": "”", "‘": "’", "「": "」"}


def strip_thinking(text: str, begins: re.Pattern[str] | None = None) -> str:
    """Return `text` without its reasoning (R2); nothing if a think block stays open.

    If a reply has only a closing tag, its reasoning began in the prompt, and ends at
    the last such tag before the first match of `begins` after a closing tag; without
    `begins`, any text after the tag is the answer.
    """
    at = 0
    while opening := _THINK_OPEN.match(text, at):
        closing = _THINK_CLOSE.search(text, opening.end())
        if closing is None:
            return ""
        at = closing.end()
    return text[at:].lstrip() if at else _strip_reasoning_from_prompt(text, begins)


def _strip_reasoning_from_prompt(text: str, begins: re.Pattern[str] | None) -> str:
    first = _THINK_CLOSE.search(text) if "</" in text else None
    if first is None or _THINK_TAG.search(text, 0, first.start()):
        return text
    if begins is None:
        closings = _THINK_CLOSES.match(text, first.start())
        return text[closings.end() if closings else 0 :]
    behind = begins.search(text, first.end())
    end = behind.start() if behind else len(text)
    *_, last = _THINK_CLOSE.finditer(text, first.start(), max(end, first.end()))
    return text[last.end() :].lstrip()


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def strip_code_fence(text: str) -> str:
    """Return the content of a code fence around the whole text, or the text itself."""
    whole = text.strip()
    match = _FENCE.match(whole)
    if match is None:
        return text
    fence = match[1]
    if len(whole) < 2 * len(fence) or not whole.endswith(fence):
        return text
    on_own_line = whole[match.end() - 1] == "\n"
    keeps_language = not on_own_line and match[2].lower() != "json"
    body = whole[len(fence) if keeps_language else match.end() : -len(fence)]
    is_one = not _closes_inside(body, fence) and (on_own_line or fence not in body)
    return body.strip("\r\n").rstrip() if is_one else text


def _closes_inside(body: str, fence: str) -> bool:
    """Whether the first fence line inside `body` ends the outer block."""
    at = 0 if body.startswith(fence) else body.find("\n" + fence) + 1
    if at == 0 and not body.startswith(fence):
        return False
    line_end = body.find("\n", at)
    rest = body[at + len(fence) : line_end if line_end >= 0 else None]
    return not rest.strip() and line_end >= 0


def unwrap_input(text: str) -> str:
    """Return a tool input without the wrapping that models add (R5)."""
    bare = strip_code_fence(text.strip())
    if len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in _QUOTED:
        inside = bare[1:-1]
        if _QUOTED[bare[0]].fullmatch(inside):
            return inside
    if len(bare) >= 2 and _TYPOGRAPHIC.get(bare[0]) == bare[-1]:
        inside = bare[1:-1]
        if bare[0] not in inside and bare[-1] not in inside:
            return inside
    return bare


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_integer(text: str) -> int | str:
    return int(text) if len(text) <= MAX_DIGITS else text


def _parse_float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


_DECODER = json.JSONDecoder(
    strict=False, parse_constant=_reject_constant, parse_float=_parse_float
)
_LONG_NUMBER_DECODER = json.JSONDecoder(
    strict=False,
    parse_constant=_reject_constant,
    parse_float=_parse_float,
    parse_int=_parse_integer,
)
_NEEDS_CLEANING = re.compile(r"\\u|\d[eE]|[\x00\ud800-\udfff]")
_MAX_SHALLOW_LENGTH = 2 * MAX_DEPTH
"""Characters that cannot be nested too deeply."""


class DecodedJson(NamedTuple):
    """A JSON value, and where the text after it begins."""

    value: Any
    end: int


def decode_json_at(text: str, start: int) -> DecodedJson:
    """Parse the JSON value at `start`; raise `ValueError` if there is none.

    Raw control characters inside strings are accepted; nothing is completed.
    """
    try:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except ValueError:
            value, end = _LONG_NUMBER_DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end - start > _MAX_SHALLOW_LENGTH or _NEEDS_CLEANING.search(text, start, end):
        value = clean_json(value)
    return DecodedJson(value, end)


def decode_json(text: str) -> Any:
    """Parse a text that is one JSON value; raise `ValueError` if it is not."""
    value, end = decode_json_at(text, _skip_space(text, 0))
    if end != len(text) and _skip_space(text, end) != len(text):
        raise ValueError("text behind the JSON value")
    return value
