"""Finding labels like `Action:` in a reply, with the tolerance of R4.

Replies are hostile, so no search here takes more than linear time: labels at a line
start are looked for behind line ends, others behind the letters they begin with,
repeats never give back what they took, and a reply can only have so many labels.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal

from runs.engine.errors import ParseError

Word = Literal["input", "action", "answer", "thought", "ai"]

_GAP = r"[^\S\n]*+"
_DIGITS = rf"{_GAP}(?:\d++{_GAP})?+"
_TAIL = rf"{_DIGITS}(?P<closed>[*_]{{1,3}}+)?+{_DIGITS}[:：]"
_PATTERNS: dict[Word, str] = {
    "input": rf"action{_GAP}(?:\d++{_GAP})?+(?<=\s)input",
    "action": "action",
    "answer": r"final[^\S\n]++answer",
    "thought": "thought",
    "ai": "ai",
}
_ANY_WORD = re.compile(r"[AaFfTt](?i:ction|inal|hought|i)")
_ANY_OBSERVATION = re.compile(r"[Oo](?i:bservation)")
_MOST = 10_000


@dataclass(frozen=True)
class Label:
    """A label and where it stands: marks included, the text behind it excluded."""

    word: Word
    start: int
    end: int
    leads: bool
    """Whether it stands at a line start."""


def labels_in(text: str, words: frozenset[Word]) -> list[Label]:
    """Return the labels that count, in order.

    Labels inside a line count only when none of `words` stands at a line start. A line
    starting with `Thought:` is always returned, `AI:` inside a line never.
    """
    if not (":" in text or "：" in text) or not _ANY_WORD.search(text):
        return []
    matches = _leading(words | {"thought"}).finditer(f"\n{text}")
    leading = [_leading_label(text, match) for match in _some(matches)]
    if any(label.word != "thought" for label in leading):
        return leading
    matches = _inside(words - {"ai", "thought"}).finditer(text)
    inside = [_inside_label(text, match) for match in _some(matches)]
    return sorted([*leading, *inside], key=lambda label: label.start)


def cut_at_observation(text: str) -> str:
    """Return what stands before the first line that starts with `Observation:`."""
    return _cut(text, _OBSERVATION) if _ANY_OBSERVATION.search(text) else text


def cut_at_intermediate_answer(text: str) -> str:
    """Return what stands before the first line starting with `Intermediate answer:`."""
    return _cut(text, _INTERMEDIATE)


def _some(matches: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    some = list(islice(matches, _MOST + 1))
    if len(some) > _MOST:
        raise ParseError("The reply has far too many labels.")
    return some


def _at_line_start(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\n(?!\n){_GAP}(?P<bold>[*_]{{1,3}}+)?+(?i:{pattern}){_TAIL}")


_OBSERVATION = _at_line_start("observation")
_INTERMEDIATE = _at_line_start(r"intermediate[^\S\n]++answer")


@cache
def _leading(words: frozenset[Word]) -> re.Pattern[str]:
    named = {
        f"(?P<{word}>{pattern})": pattern[:2]
        for word, pattern in _PATTERNS.items()
        if word in words
    }
    return _at_line_start(_one_of(named))


@cache
def _inside(words: frozenset[Word]) -> re.Pattern[str]:
    named = {
        f"(?P<{word}>(?<={pattern[0]}){pattern[1:]})": pattern[1:3]
        for word, pattern in _PATTERNS.items()
        if word in words
    }
    no_letter_before = "(?<![A-Za-z0-9_].)"
    return re.compile(
        rf"[AaFf]{no_letter_before}(?i:{_one_of(named)}){_TAIL}", re.DOTALL
    )


def _one_of(patterns: dict[str, str]) -> str:
    """Return a pattern for any of `patterns`; with each, the letters it begins with.

    One look at the letters saves a try of each pattern where none can be.
    """
    letters = "|".join(sorted(set(patterns.values())))
    return rf"(?={letters})(?:{'|'.join(patterns)})"


def _leading_label(text: str, match: re.Match[str]) -> Label:
    """Return a label that was found in `text` with a line end put before it."""
    bold = match["bold"] or ""
    word = _word_of(match)
    start = (match.start("bold") if bold else match.start(word)) - 1
    return Label(word, start, _end(text, match.end() - 1, match, bold), leads=True)


def _inside_label(text: str, match: re.Match[str]) -> Label:
    before = text[max(0, match.start() - 3) : match.start()]
    bold = before[len(before.rstrip("*")) :]
    start = match.start() - len(bold)
    end = _end(text, match.end(), match, bold)
    return Label(_word_of(match), start, end, leads=False)


def _end(text: str, end: int, match: re.Match[str], bold: str) -> int:
    """Return the end of a label, with the marks that close it behind its colon."""
    closes_here = bold and not match["closed"] and text.startswith(bold, end)
    return end + len(bold) if closes_here else end


def _word_of(match: re.Match[str]) -> Word:
    groups = match.groupdict()
    return next(word for word in _PATTERNS if groups.get(word) is not None)


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(f"\n{text}")
    return text if match is None else text[: match.start()]
