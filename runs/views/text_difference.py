"""Two texts as marked lines: what was taken away, what was added, word by word."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

WORD = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|[^\W\u3000-\u9fff]+|\s+|[^\w\s]")
"""A word, a space, or a sign; Chinese characters stand alone."""

CONTEXT = 2
"""Equal lines shown around a change."""
LONGEST = 40_000
"""Characters of each text that are compared."""
MOST_LINES = 160
"""Lines of one difference that are shown."""
MOST_AT_ONCE = 120_000
"""Product of the lengths that are compared piece by piece; above, as a whole."""


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True)
class Line:
    """One line: same, del, ins, or gap for lines left out."""

    tone: str
    pieces: tuple[Piece, ...]


@dataclass
class Effort:
    """How much comparing one page may still do; beyond that it marks whole lines."""

    left: int = 1_000_000

    def take(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        """Whether comparing these is worth it."""
        size = len(one) * len(other)
        if size > min(MOST_AT_ONCE, self.left):
            return False
        self.left -= size
        return True


class Change(NamedTuple):
    """Items `a1` to `a2` of one became items `b1` to `b2` of the other, or stayed."""

    is_same: bool
    a1: int
    a2: int
    b1: int
    b2: int


def difference(one: str, other: str, effort: Effort) -> list[Line]:
    """Return the changed lines from `one` to `other`, with a little around them.

    Equal texts give no line. JSON is compared in its indented form.
    """
    one, other = legible(one), legible(other)
    if one == other:
        return []
    before, after = one.splitlines(), other.splitlines()
    lines: list[Line] = []
    changes = list(changes_of(before, after, effort))
    for place, change in enumerate(changes):
        if change.is_same:
            is_edge = (place == 0, place == len(changes) - 1)
            lines += around(before[change.a1 : change.a2], *is_edge)
        else:
            old, new = before[change.a1 : change.a2], after[change.b1 : change.b2]
            lines += replaced(old, new, effort)
        if len(lines) > MOST_LINES:
            told = "More differs below. Open both steps to read all of it."
            return [*lines[:MOST_LINES], Line("gap", (Piece(told),))]
    return lines


def legible(text: str) -> str:
    """Return JSON with indents, other text as it is, both cut where they are long."""
    if text.lstrip()[:1] in {"{", "["} and len(text) <= LONGEST:
        with suppress(ValueError, RecursionError):  # no JSON, or nested too deeply
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return text[:LONGEST]


def changes_of(
    one: Sequence[str], other: Sequence[str], effort: Effort
) -> Iterator[Change]:
    """Yield what stayed and what changed, in order."""
    start, end = shared_ends(one, other)
    a2, b2 = len(one) - end, len(other) - end
    if start:
        yield Change(True, 0, start, 0, start)
    inner, outer = one[start:a2], other[start:b2]
    if inner and outer and effort.take(inner, outer):
        matcher = SequenceMatcher(None, inner, outer, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield Change(tag == "equal", start + i1, start + i2, start + j1, start + j2)
    elif inner or outer:
        yield Change(False, start, a2, start, b2)
    if end:
        yield Change(True, a2, len(one), b2, len(other))


def shared_ends(one: Sequence[Any], other: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are equal at the beginning, and at the end of the rest."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return start, end


def around(same: list[str], is_first: bool, is_last: bool) -> list[Line]:
    """Return the equal lines next to changes, and how many are left out."""
    head = 0 if is_first else CONTEXT
    tail = 0 if is_last else CONTEXT
    if len(same) <= head + tail + 1:
        return [Line("same", (Piece(text),)) for text in same]
    left_out = len(same) - head - tail
    gap = Line("gap", (Piece(f"{left_out:,} equal lines"),))
    shown = [Line("same", (Piece(text),)) for text in same]
    return [*shown[:head], gap, *shown[len(shown) - tail :]]


def replaced(old: list[str], new: list[str], effort: Effort) -> list[Line]:
    """Return lines that took each other's place, their words marked."""
    gone: list[Line] = []
    come: list[Line] = []
    for before, after in zip(old, new, strict=False):
        one, other = marked(before, after, effort)
        gone.append(Line("del", one))
        come.append(Line("ins", other))
    gone += [Line("del", (Piece(text),)) for text in old[len(come) :]]
    come += [Line("ins", (Piece(text),)) for text in new[len(come) :]]
    return [*gone, *come]


def marked(
    before: str, after: str, effort: Effort
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both lines in pieces, the words that differ marked."""
    one, other = WORD.findall(before), WORD.findall(after)
    mine: list[Piece] = []
    yours: list[Piece] = []
    for change in changes_of(one, other, effort):
        mine.append(Piece("".join(one[change.a1 : change.a2]), not change.is_same))
        yours.append(Piece("".join(other[change.b1 : change.b2]), not change.is_same))
    return tuple(p for p in mine if p.text), tuple(p for p in yours if p.text)
