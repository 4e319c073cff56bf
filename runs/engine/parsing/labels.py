"""Search for labels like `Action:` in a reply, with the tolerance of R4.

Replies are hostile, so every search takes linear time: labels at a line start are
searched after line ends, others after their first letters, repeats are possessive,
and the number of labels in a reply is limited.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal

from runs.engine.errors import ParseError

LabelWord = Literal["input", "action", "answer", "thought", "ai"]

_BLANK = r"[ \t\r\f\v\xa0\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]"
"""White space within a line, and invisible characters: byte order mark, zero width."""
_GAP = rf"{_BLANK}*+"
_LIST_MARKS = (
    rf"(?P<marks>(?:(?:\#{{1,6}}|>|(?:[-*+]|\d{{1,3}}[.)]){_BLANK}){_GAP}){{0,4}}+)"
)
"""Of a heading, a quote or a list (R4)."""
_DIGITS = rf"{_GAP}(?:\d++{_GAP})?+"
_TAIL = rf"{_DIGITS}(?P<closed>[*_]{{1,3}}+)?+{_DIGITS}[:：]"
_PATTERNS: dict[LabelWord, str] = {
    "input": rf"action{_GAP}(?:\d++{_GAP})?+(?<=\s)input",
    "action": "action",
    "answer": r"final[^\S\n]++answer",
    "thought": "thought",
    "ai": "ai",
}
_ANY_WORD = re.compile(r"[AaFfTt](?i:ction|inal|hought|i)")
_ANY_OBSERVATION = re.compile(r"[Oo](?i:bservation)")
_MAX_LABELS = 10_000


@dataclass(frozen=True)
class ReplyLabel:
    """A label and its position: with its marks, without the text after it."""

    word: LabelWord
    start: int
    end: int
    is_at_line_start: bool
    """Whether it is at a line start."""


def find_labels(text: str, words: frozenset[LabelWord]) -> list[ReplyLabel]:
    """Return the labels that count, in order.

    Labels inside a line count only if none of `words` is at a line start. A line
    starting with `Thought:` is always returned, `AI:` inside a line never.
    """
    if not (":" in text or "：" in text) or not _ANY_WORD.search(text):
        return []
    matches = _compile_leading(words | {"thought"}).finditer(f"\n{text}")
    leading = [_build_leading_label(text, match) for match in _take_matches(matches)]
    if any(label.word != "thought" for label in leading):
        return leading
    matches = _compile_inline(words - {"ai", "thought"}).finditer(text)
    inside = [_build_inline_label(text, match) for match in _take_matches(matches)]
    return sorted([*leading, *inside], key=lambda label: label.start)


def find_label_inside(text: str, word: LabelWord) -> ReplyLabel | None:
    """Return the first label `word` inside a line of `text`."""
    match = _compile_inline(frozenset({word})).search(text)
    return None if match is None else _build_inline_label(text, match)


def cut_at_observation(text: str) -> str:
    """Return the text before the first line that starts with `Observation:`."""
    return _truncate_at(text, _OBSERVATION) if _ANY_OBSERVATION.search(text) else text


def cut_at_intermediate_answer(text: str) -> str:
    """Return the text before the first line starting with `Intermediate answer:`."""
    return _truncate_at(text, _INTERMEDIATE)


def _take_matches(matches: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    some = list(islice(matches, _MAX_LABELS + 1))
    if len(some) > _MAX_LABELS:
        raise ParseError("The reply has far too many labels.")
    return some


def _at_line_start(pattern: str) -> re.Pattern[str]:
    return re.compile(
        rf"\n(?!\n){_GAP}{_LIST_MARKS}(?P<bold>[*_]{{1,3}}+)?+(?i:{pattern}){_TAIL}"
    )


_OBSERVATION = _at_line_start("observation")
_INTERMEDIATE = _at_line_start(r"intermediate[^\S\n]++answer")


@cache
def _compile_leading(words: frozenset[LabelWord]) -> re.Pattern[str]:
    named = {
        f"(?P<{word}>{pattern})": pattern[:2]
        for word, pattern in _PATTERNS.items()
        if word in words
    }
    return _at_line_start(_any_of(named))


@cache
def _compile_inline(words: frozenset[LabelWord]) -> re.Pattern[str]:
    named = {
        f"(?P<{word}>(?<={pattern[0]}){pattern[1:]})": pattern[1:3]
        for word, pattern in _PATTERNS.items()
        if word in words
    }
    no_letter_before = "(?<![A-Za-z0-9_].)"
    return re.compile(
        rf"[AaFf]{no_letter_before}(?i:{_any_of(named)}){_TAIL}", re.DOTALL
    )


def _any_of(patterns: dict[str, str]) -> str:
    """Return a pattern for any of `patterns`, keyed by the letters they begin with.

    A lookahead at the letters avoids trying each pattern.
    """
    letters = "|".join(sorted(set(patterns.values())))
    return rf"(?={letters})(?:{'|'.join(patterns)})"


def _build_leading_label(text: str, match: re.Match[str]) -> ReplyLabel:
    """Return a label that was found in `text` with a line end put before it."""
    bold = match["bold"] or ""
    word = _word_of_match(match)
    start = match.start("bold") if bold else match.start(word)
    start = (match.start("marks") if match["marks"] else start) - 1
    return ReplyLabel(
        word,
        start,
        _end_of_label(text, match.end() - 1, match, bold),
        is_at_line_start=True,
    )


def _build_inline_label(text: str, match: re.Match[str]) -> ReplyLabel:
    before = text[max(0, match.start() - 3) : match.start()]
    bold = before[len(before.rstrip("*")) :]
    start = match.start() - len(bold)
    end = _end_of_label(text, match.end(), match, bold)
    return ReplyLabel(_word_of_match(match), start, end, is_at_line_start=False)


def _end_of_label(text: str, end: int, match: re.Match[str], bold: str) -> int:
    """Return the end of a label, including the marks that close it after its colon."""
    closes_here = bold and not match["closed"] and text.startswith(bold, end)
    return end + len(bold) if closes_here else end


def _word_of_match(match: re.Match[str]) -> LabelWord:
    groups = match.groupdict()
    return next(word for word in _PATTERNS if groups.get(word) is not None)


def _truncate_at(text: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(f"\n{text}")
    return text if match is None else text[: match.start()]
