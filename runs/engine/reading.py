"""The first steps of reading any reply: thinking, code fences, quotes, strict JSON.

Replies are hostile: everything here takes linear time and raises only `ValueError`.
"""

import json
import re
from typing import Any, NamedTuple

from runs.engine.clean import MAX_DEPTH, MAX_DIGITS, clean_json

_THINK_BLOCKS = re.compile(r"(?:\s*+<think>(?:[^<]++|<(?!/think>))*+</think>)++")
_SPACE = re.compile(r"\s*+")
_FENCE = re.compile(r"(`{3,}+|~{3,}+)([\w+#.-]*+)[^\S\n]*+(?:\n|(?=.))")
_QUOTED = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
}


def without_thinking(text: str) -> str:
    """Return `text` without the think block it starts with; nothing if that is open."""
    if not text.lstrip().startswith("<think>"):
        return text
    blocks = _THINK_BLOCKS.match(text)
    rest = text[blocks.end() if blocks else 0 :].lstrip()
    return "" if rest.startswith("<think>") else rest


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def unfenced(text: str) -> str:
    """Return what one code fence around the whole text encloses, or the text itself."""
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
    """Say whether the first fence line inside `body` ends the outer block."""
    at = 0 if body.startswith(fence) else body.find("\n" + fence) + 1
    if at == 0 and not body.startswith(fence):
        return False
    line_end = body.find("\n", at)
    rest = body[at + len(fence) : line_end if line_end >= 0 else None]
    return not rest.strip() and line_end >= 0


def input_text(text: str) -> str:
    """Return a tool input without what models wrap around it (R5)."""
    bare = unfenced(text.strip())
    if len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in _QUOTED:
        inside = bare[1:-1]
        if _QUOTED[bare[0]].fullmatch(inside):
            return inside
    return bare


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole_number(text: str) -> int | str:
    return int(text) if len(text) <= MAX_DIGITS else text


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_LONG_NUMBERS = json.JSONDecoder(
    strict=False, parse_constant=_refuse_constant, parse_int=_whole_number
)
_TO_CLEAN = re.compile(r"\\u|\d[eE]|[\x00\ud800-\udfff]")
_SHORT = 2 * MAX_DEPTH
"""Characters that cannot be nested too deeply."""


class Decoded(NamedTuple):
    """A JSON value, and where the text behind it begins."""

    value: Any
    end: int


def decode_at(text: str, start: int) -> Decoded:
    """Read the JSON value that begins at `start`; raise `ValueError` if there is none.

    Raw control characters inside strings are accepted; nothing is ever completed.
    """
    try:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except ValueError:
            value, end = _LONG_NUMBERS.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end - start > _SHORT or _TO_CLEAN.search(text, start, end):
        value = clean_json(value)
    return Decoded(value, end)


def decode_whole(text: str) -> Any:
    """Read a text that is one JSON value; raise `ValueError` if it is not."""
    value, end = decode_at(text, _skip_space(text, 0))
    if end != len(text) and _skip_space(text, end) != len(text):
        raise ValueError("text behind the JSON value")
    return value
