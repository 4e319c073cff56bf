"""The difference of two texts: changed lines with marked words and some context."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

WORD_PATTERN = re.compile(
    r"[\u3000-\u9fff\uff00-\uffef]|[^\W\u3000-\u9fff]+|\s+|[^\w\s]"
)
"""A word, a space, or a sign; each Chinese character is a word."""

CONTEXT_LINES = 2
"""Equal lines shown around a change."""
MAX_COMPARED_CHARACTERS = 40_000
"""Characters of each text that are compared."""
MAX_SHOWN_LINES = 160
"""Lines of one difference that are shown."""
MAX_PRODUCT = 120_000
"""Product of the lengths that are compared item by item; longer ones as a whole."""


class DiffPiece(NamedTuple):
    text: str
    is_marked: bool = False


@dataclass(frozen=True)
class DiffLine:
    tone: str
    """same, del, ins, or gap for omitted lines and headings."""
    pieces: tuple[DiffPiece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass
class DiffBudget:
    """How many more comparisons one page may do; beyond that whole lines differ."""

    left: int = 1_000_000
    most_at_once: int = MAX_PRODUCT

    def spend(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        size = len(one) * len(other)
        if size > min(self.most_at_once, self.left):
            return False
        self.left -= size
        return True


class DiffSpan(NamedTuple):
    """Items `a1` to `a2` of one text became `b1` to `b2` of the other, or are equal."""

    is_same: bool
    a1: int
    a2: int
    b1: int
    b2: int


def diff_texts(
    one: str,
    other: str,
    budget: DiffBudget | None = None,
    *,
    context: int | None = CONTEXT_LINES,
    is_exact: bool = False,
    most: int | None = MAX_SHOWN_LINES,
) -> list[DiffLine]:
    """Return the lines that changed, with `context` equal lines around each change.

    Equal texts give no line, unless `context` is None: then all equal lines are there.
    With `is_exact` the texts are compared as they are, otherwise long ones are cut and
    JSON is indented first. `most` cuts the result.
    """
    if not is_exact:
        one, other = format_comparable_text(one), format_comparable_text(other)
    if one == other and context is not None:
        return []
    budget = budget or DiffBudget()
    before, after = (text.split("\n") if text else [] for text in (one, other))
    lines: list[DiffLine] = []
    spans = list(iter_diff_spans(before, after, budget))
    for place, span in enumerate(spans):
        old, new = before[span.a1 : span.a2], after[span.b1 : span.b2]
        if not span.is_same:
            lines += build_replaced_lines(old, new, budget)
        elif context is None:
            lines += [build_plain_line("same", text) for text in old]
        else:
            head = 0 if place == 0 else context
            tail = 0 if place == len(spans) - 1 else context
            lines += build_context_lines(old, head, tail)
        if most is not None and len(lines) > most:
            text = _("More lines differ than are shown here.")
            return [*lines[:most], build_plain_line("gap", text)]
    return lines


def build_plain_line(tone: str, text: str) -> DiffLine:
    return DiffLine(tone, (DiffPiece(text),))


def format_comparable_text(text: str) -> str:
    """Return JSON with indents and other text as it is, both cut if they are long."""
    if text.lstrip()[:1] in {"{", "["} and len(text) <= MAX_COMPARED_CHARACTERS:
        with suppress(ValueError, RecursionError):  # not JSON, or nested too deeply
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return text[:MAX_COMPARED_CHARACTERS]


def iter_diff_spans(
    one: Sequence[str], other: Sequence[str], budget: DiffBudget
) -> Iterator[DiffSpan]:
    """Yield what is equal and what changed, in order."""
    start, end = count_shared_ends(one, other)
    a2, b2 = len(one) - end, len(other) - end
    if start:
        yield DiffSpan(True, 0, start, 0, start)
    inner, outer = one[start:a2], other[start:b2]
    if inner and outer and budget.spend(inner, outer):
        matcher = SequenceMatcher(None, inner, outer, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield DiffSpan(
                tag == "equal", start + i1, start + i2, start + j1, start + j2
            )
    elif inner or outer:
        yield DiffSpan(False, start, a2, start, b2)
    if end:
        yield DiffSpan(True, a2, len(one), b2, len(other))


def count_shared_ends(one: Sequence[Any], other: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are equal at the beginning, and at the end of the rest."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return start, end


def build_context_lines(same: list[str], head: int, tail: int) -> list[DiffLine]:
    """Return the first `head` and last `tail` equal lines, and how many are omitted."""
    shown = [build_plain_line("same", text) for text in same]
    omitted = len(same) - head - tail
    if omitted <= 1:
        return shown
    text = ngettext("%(count)s equal line", "%(count)s equal lines", omitted)
    gap = build_plain_line("gap", text % {"count": omitted})
    return [*shown[:head], gap, *shown[len(shown) - tail :]]


def build_replaced_lines(
    old: list[str], new: list[str], budget: DiffBudget
) -> list[DiffLine]:
    """Return lines that replace each other, with their changed words marked."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for before, after in zip(old, new, strict=False):
        one, other = diff_words(before, after, budget)
        removed.append(DiffLine("del", one))
        added.append(DiffLine("ins", other))
    removed += [build_plain_line("del", text) for text in old[len(added) :]]
    added += [build_plain_line("ins", text) for text in new[len(added) :]]
    return [*removed, *added]


def diff_words(
    before: str, after: str, budget: DiffBudget
) -> tuple[tuple[DiffPiece, ...], tuple[DiffPiece, ...]]:
    """Return both lines in pieces, with the words that differ marked."""
    one, other = WORD_PATTERN.findall(before), WORD_PATTERN.findall(after)
    old: list[DiffPiece] = []
    new: list[DiffPiece] = []
    for span in iter_diff_spans(one, other, budget):
        old.append(DiffPiece("".join(one[span.a1 : span.a2]), not span.is_same))
        new.append(DiffPiece("".join(other[span.b1 : span.b2]), not span.is_same))
    return tuple(p for p in old if p.text), tuple(p for p in new if p.text)
