"""The rows of two runs side by side: aligned, what differs named, folded where equal.

All rows are read as digests; texts only of those that a page shows.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import F, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import MD5, Cast, Coalesce

from runs.models import AgentStep, ModelCall, Run
from runs.templatetags.look import duration
from runs.views.plain_words import words_of_input, words_of_reply, words_of_result
from runs.views.run_alignment import Token, align
from runs.views.run_detail import indented
from runs.views.text_difference import Effort, Line, Piece, difference

WINDOW = 100
"""Lines of the comparison on one page."""
SHOWN = 40_000
"""Characters of a text that are compared."""


class Mark(NamedTuple):
    """One row of a run, as short as comparing needs it."""

    number: int
    pk: int
    token: Token
    outcome: str
    """Digest of the observation with its status; empty for model calls."""
    seconds: float
    is_copied: bool
    is_edited: bool

    @property
    def is_call(self) -> bool:
        """Whether the model was asked."""
        return not self.token.name


class Couple(NamedTuple):
    """Two rows that stand side by side; one of them may be missing."""

    a: Mark | None
    b: Mark | None

    @property
    def is_same(self) -> bool:
        """Whether both did the same, with the same outcome."""
        a, b = self.a, self.b
        if a is None or b is None:
            return False
        return (a.token, a.outcome) == (b.token, b.outcome)


@dataclass(frozen=True)
class Side:
    """One row as the page shows it."""

    number: int
    icon: str
    name: str
    words: str


@dataclass(frozen=True)
class Entry:
    """One line of the comparison: a couple of rows, or equal ones folded."""

    a: Side | None = None
    b: Side | None = None
    mid: str = ""
    fold: str = ""
    """What a folded line says."""
    fold_from: int = 0
    is_reused: bool = False
    lines: tuple[Line, ...] = ()


class Totals(NamedTuple):
    """How many rows are equal, differ, or are in one run only."""

    same: int
    differ: int
    only_a: int
    only_b: int


class Fold(NamedTuple):
    """Equal couples that are shown as one line."""

    couples: list[Couple]
    start: int
    """Place of the first among all couples."""


@dataclass
class Texts:
    """The rows that a page shows, read at once."""

    calls: dict[int, ModelCall] = field(default_factory=dict)
    steps: dict[int, AgentStep] = field(default_factory=dict)
    asked: dict[int, list[AgentStep]] = field(default_factory=dict)
    """Steps by the model call that asked for them."""


def couples_of(one: Run, other: Run) -> list[Couple]:
    """Return all rows of both runs, aligned."""
    mine, theirs = marks_of(one), marks_of(other)
    pairs = align([row.token for row in mine], [row.token for row in theirs])
    return [
        Couple(
            None if a is None else mine[a],
            None if b is None else theirs[b],
        )
        for a, b in pairs
    ]


def marks_of(run: Run) -> list[Mark]:
    """Return the rows of a run in order."""
    steps = AgentStep.objects.filter(run=run).annotate(
        row=F("index") + F("model_call__number") + 2,
        asked=MD5(Cast("tool_input", TextField())),
        told=MD5("observation"),
    )
    marks: list[Mark] = []
    wanted: dict[int, list[str]] = {}
    for row in steps.order_by("index").values_list(
        *("row", "pk", "tool", "asked", "told", "status", "duration"),
        *("is_copied", "is_edited", "model_call_id"),
    ):
        number, pk, tool, asked, told, status, seconds, copied, edited, call = row
        wanted.setdefault(call, []).append(f"{tool}{asked}")
        took = 0.0 if copied else seconds or 0.0
        marks.append(
            Mark(
                number,
                pk,
                Token(tool, asked or ""),
                f"{told}{status}",
                took,
                copied,
                edited,
            )
        )
    calls = ModelCall.objects.filter(run=run).annotate(
        row=F("number") + F("at_index") + 1,
        said=MD5(Coalesce(KT("reply__text"), Cast("purpose", TextField()))),
    )
    for row in calls.order_by("number").values_list(
        "row", "pk", "purpose", "said", "elapsed", "is_copied", "is_edited"
    ):
        number, pk, purpose, said, seconds, copied, edited = row
        whole = "\n".join([purpose, said or "", *wanted.get(pk, [])])
        exact = hashlib.sha256(whole.encode()).hexdigest()
        took = 0.0 if copied else seconds
        marks.append(Mark(number, pk, Token("", exact), "", took, copied, edited))
    return sorted(marks, key=lambda mark: mark.number)


def totals_of(couples: Iterable[Couple]) -> Totals:
    """Count what the comparison found."""
    same = differ = only_a = only_b = 0
    for couple in couples:
        if couple.is_same:
            same += 1
        elif couple.b is None:
            only_a += 1
        elif couple.a is None:
            only_b += 1
        else:
            differ += 1
    return Totals(same, differ, only_a, only_b)


def folded(couples: Sequence[Couple]) -> list[Couple | Fold]:
    """Return the couples with each stretch of equal ones as one."""
    found: list[Couple | Fold] = []
    for place, couple in enumerate(couples):
        if not couple.is_same:
            found.append(couple)
        elif found and isinstance(found[-1], Fold):
            found[-1].couples.append(couple)
        else:
            found.append(Fold([couple], place))
    return found


def entries_of(shown: Sequence[Couple | Fold]) -> list[Entry]:
    """Return the lines of one page, with the differences of their texts."""
    texts, effort = (
        texts_of([one for one in shown if isinstance(one, Couple)]),
        Effort(),
    )
    return [
        fold_entry(one) if isinstance(one, Fold) else entry_of(one, texts, effort)
        for one in shown
    ]


def fold_entry(fold: Fold) -> Entry:
    """Return the line that stands for equal rows."""
    mine = numbers([one.a.number for one in fold.couples if one.a])
    theirs = numbers([one.b.number for one in fold.couples if one.b])
    what = f"{mine} of both" if mine == theirs else f"{mine} of A and {theirs} of B"
    verb = "is" if len(fold.couples) == 1 else "are"
    return Entry(
        fold=f"{what} {verb} the same",
        fold_from=fold.start,
        is_reused=all(one.b is not None and one.b.is_copied for one in fold.couples),
    )


def numbers(places: list[int]) -> str:
    """Name one step or several that follow each other."""
    first, last = places[0], places[-1]
    return f"Step {first}" if first == last else f"Steps {first} to {last}"


def texts_of(couples: Iterable[Couple]) -> Texts:
    """Read the rows of these couples."""
    marks = [mark for couple in couples for mark in couple if mark is not None]
    calls = [mark.pk for mark in marks if mark.is_call]
    steps = AgentStep.objects.defer("value", "log")
    found = Texts(
        calls=ModelCall.objects.in_bulk(calls),
        steps=steps.in_bulk([mark.pk for mark in marks if not mark.is_call]),
    )
    rows = steps.defer("observation").filter(model_call__in=calls)
    for step in rows.order_by("index"):
        found.asked.setdefault(step.model_call_id, []).append(step)
    return found


def entry_of(couple: Couple, texts: Texts, effort: Effort) -> Entry:
    """Return one line with both sides."""
    a, b = couple
    lines: list[Line] = []
    if a is not None and b is not None and not couple.is_same:
        found = [
            difference(one[:SHOWN], other[:SHOWN], effort)
            for one, other in zip(
                contents_of(a, texts), contents_of(b, texts), strict=True
            )
        ]
        words = ("Reply", "Calls") if a.is_call else ("Arguments", "Result")
        for word, part in zip(words, found, strict=True):
            lines += [Line("gap", (Piece(word),)), *part] if part else []
    return Entry(
        a=side_of(a, texts) if a else None,
        b=side_of(b, texts) if b else None,
        mid=mid_of(couple),
        lines=tuple(lines),
    )


def contents_of(mark: Mark, texts: Texts) -> tuple[str, str]:
    """Return the two texts of a row: input and result, or words and calls."""
    if mark.is_call:
        call = texts.calls[mark.pk]
        asked = [
            f"{step.tool} {one_line(step)}" for step in texts.asked.get(mark.pk, [])
        ]
        return call.reply.get("text", ""), "\n".join(asked)
    step = texts.steps[mark.pk]
    told = step.tool_input
    return told if isinstance(told, str) else indented(told), step.observation


def one_line(step: AgentStep) -> str:
    """Return a call's arguments in one line."""
    return " ".join(indented(step.tool_input).split())


def side_of(mark: Mark, texts: Texts) -> Side:
    """Return a row in plain words."""
    if mark.is_call:
        call = texts.calls[mark.pk]
        words = words_of_reply(call.reply, purpose=call.purpose)
        icon = "edit" if mark.is_edited else "model"
        return Side(mark.number, icon, "", words)
    step = texts.steps[mark.pk]
    is_error = step.tool == "_Exception"
    result = words_of_result(step.observation)
    asked = "" if is_error else words_of_input(step.tool_input)
    icon = "alert" if step.status == "failed" else "tool"
    words = " → ".join(part for part in (asked, result) if part)
    name = "" if is_error else step.tool
    return Side(mark.number, "edit" if mark.is_edited else icon, name, words)


def mid_of(couple: Couple) -> str:
    """Say in a word how the two differ, and by how much time."""
    a, b = couple
    if a is None or b is None:
        side = "only B" if a is None else "only A"
        seconds = (b.seconds if b else 0.0) - (a.seconds if a else 0.0)
        return ", ".join(filter(None, [side, by(seconds)]))
    if couple.is_same:
        return by(0.0 if b.is_copied or a.is_copied else b.seconds - a.seconds)
    if a.is_edited or b.is_edited:
        return "edited"
    if a.is_call:
        return "other reply"
    return "other result" if a.token == b.token else "other input"


def by(seconds: float) -> str:
    """Write a difference in time; nothing for one that nobody would feel."""
    if abs(seconds) < 0.05:
        return ""
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"
