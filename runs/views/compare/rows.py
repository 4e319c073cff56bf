"""The rows of two runs side by side, aligned, with equal rows folded.

All rows are read as digests, texts only for those on the page.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import F, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import MD5, Cast, Coalesce
from django.utils.translation import gettext as _

from runs.models import AgentStep, ModelCall, Run
from runs.ui.format import duration
from runs.ui.summaries import summarize_input, summarize_reply, summarize_result
from runs.views.compare.alignment import RowToken, align_rows
from runs.views.run.step_detail import indent_json
from tools.ui.diff import DiffBudget, DiffLine, build_plain_line, diff_texts

WINDOW = 100
"""Lines of the comparison on one page."""
MAX_COMPARED_CHARACTERS = 40_000
"""Characters of a text that are compared."""


class RowDigest(NamedTuple):
    """One row of a run, reduced for comparison."""

    number: int
    pk: int
    token: RowToken
    outcome: str
    """Digest of the observation with its status; empty for model calls."""
    seconds: float
    is_copied: bool
    is_edited: bool

    @property
    def is_call(self) -> bool:
        return not self.token.name


class RowPair(NamedTuple):
    """Two rows side by side; one of them may be missing."""

    a: RowDigest | None
    b: RowDigest | None

    @property
    def is_same(self) -> bool:
        """Whether both did the same, with the same outcome."""
        a, b = self.a, self.b
        if a is None or b is None:
            return False
        return (a.token, a.outcome) == (b.token, b.outcome)


@dataclass(frozen=True)
class ComparedSide:
    """One row on the page."""

    number: int
    icon: str
    name: str
    words: str


@dataclass(frozen=True)
class ComparisonLine:
    """One line of the comparison: a pair of rows, or folded equal ones."""

    a: ComparedSide | None = None
    b: ComparedSide | None = None
    difference_text: str = ""
    fold: str = ""
    """Text of a folded line."""
    fold_from: int = 0
    is_reused: bool = False
    lines: tuple[DiffLine, ...] = ()


class ComparisonTotals(NamedTuple):
    """How many rows are equal, different, or only in one run."""

    same: int
    differ: int
    only_a: int
    only_b: int


class FoldedPairs(NamedTuple):
    """Equal pairs that are shown as one line."""

    couples: list[RowPair]
    start: int
    """Position of the first among all pairs."""


@dataclass
class RowTexts:
    """The rows on the page, read at once."""

    calls: dict[int, ModelCall] = field(default_factory=dict)
    steps: dict[int, AgentStep] = field(default_factory=dict)
    steps_by_call: dict[int, list[AgentStep]] = field(default_factory=dict)
    """Steps by the model call that requested them."""


def pair_rows(one: Run, other: Run) -> list[RowPair]:
    """Return all rows of both runs, aligned."""
    mine, theirs = load_row_digests(one), load_row_digests(other)
    pairs = align_rows([row.token for row in mine], [row.token for row in theirs])
    return [
        RowPair(
            None if a is None else mine[a],
            None if b is None else theirs[b],
        )
        for a, b in pairs
    ]


def load_row_digests(run: Run) -> list[RowDigest]:
    """Return the rows of a run in order."""
    steps = AgentStep.objects.filter(run=run).annotate(
        row=F("index") + F("model_call__number") + 2,
        asked=MD5(Cast("tool_input", TextField())),
        result=MD5("observation"),
    )
    marks: list[RowDigest] = []
    wanted: dict[int, list[str]] = {}
    for row in steps.order_by("index").values_list(
        *("row", "pk", "tool", "asked", "result", "status", "duration"),
        *("is_copied", "is_edited", "model_call_id"),
    ):
        number, pk, tool, asked, result, status, seconds, copied, edited, call = row
        wanted.setdefault(call, []).append(f"{tool}{asked}")
        took = 0.0 if copied else seconds or 0.0
        marks.append(
            RowDigest(
                number,
                pk,
                RowToken(tool, asked or ""),
                f"{result}{status}",
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
        marks.append(
            RowDigest(number, pk, RowToken("", exact), "", took, copied, edited)
        )
    return sorted(marks, key=lambda mark: mark.number)


def count_pairs(couples: Iterable[RowPair]) -> ComparisonTotals:
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
    return ComparisonTotals(same, differ, only_a, only_b)


def fold_equal_pairs(couples: Sequence[RowPair]) -> list[RowPair | FoldedPairs]:
    """Return the pairs with each stretch of equal ones as one."""
    found: list[RowPair | FoldedPairs] = []
    for place, couple in enumerate(couples):
        if not couple.is_same:
            found.append(couple)
        elif found and isinstance(found[-1], FoldedPairs):
            found[-1].couples.append(couple)
        else:
            found.append(FoldedPairs([couple], place))
    return found


def build_comparison_lines(
    shown: Sequence[RowPair | FoldedPairs],
) -> list[ComparisonLine]:
    """Return the lines of one page, with the differences of their texts."""
    texts, effort = (
        load_row_texts([one for one in shown if isinstance(one, RowPair)]),
        DiffBudget(),
    )
    return [
        build_folded_line(one)
        if isinstance(one, FoldedPairs)
        else build_comparison_line(one, texts, effort)
        for one in shown
    ]


def build_folded_line(fold: FoldedPairs) -> ComparisonLine:
    mine = format_step_numbers([one.a.number for one in fold.couples if one.a])
    theirs = format_step_numbers([one.b.number for one in fold.couples if one.b])
    if mine == theirs:
        text = _("%(steps)s of both runs: the same") % {"steps": mine}
    else:
        values = {"a": mine, "b": theirs}
        text = _("%(a)s of A and %(b)s of B: the same") % values
    return ComparisonLine(
        fold=text,
        fold_from=fold.start,
        is_reused=all(one.b is not None and one.b.is_copied for one in fold.couples),
    )


def format_step_numbers(places: list[int]) -> str:
    """Return one step number or the range of several."""
    if len(places) == 1:
        return _("Step %(number)s") % {"number": places[0]}
    values = {"first": places[0], "last": places[-1]}
    return _("Steps %(first)s to %(last)s") % values


def load_row_texts(couples: Iterable[RowPair]) -> RowTexts:
    marks = [mark for couple in couples for mark in couple if mark is not None]
    calls = [mark.pk for mark in marks if mark.is_call]
    steps = AgentStep.objects.defer("value", "log")
    found = RowTexts(
        calls=ModelCall.objects.in_bulk(calls),
        steps=steps.in_bulk([mark.pk for mark in marks if not mark.is_call]),
    )
    rows = steps.defer("observation").filter(model_call__in=calls)
    for step in rows.order_by("index"):
        found.steps_by_call.setdefault(step.model_call_id, []).append(step)
    return found


def build_comparison_line(
    couple: RowPair, texts: RowTexts, effort: DiffBudget
) -> ComparisonLine:
    a, b = couple
    lines: list[DiffLine] = []
    if a is not None and b is not None and not couple.is_same:
        found = [
            diff_texts(
                one[:MAX_COMPARED_CHARACTERS], other[:MAX_COMPARED_CHARACTERS], effort
            )
            for one, other in zip(
                get_row_contents(a, texts), get_row_contents(b, texts), strict=True
            )
        ]
        words = (_("Reply"), _("Calls")) if a.is_call else (_("Arguments"), _("Result"))
        for word, part in zip(words, found, strict=True):
            lines += [build_plain_line("gap", word), *part] if part else []
    return ComparisonLine(
        a=build_compared_side(a, texts) if a else None,
        b=build_compared_side(b, texts) if b else None,
        difference_text=describe_pair_difference(couple),
        lines=tuple(lines),
    )


def get_row_contents(mark: RowDigest, texts: RowTexts) -> tuple[str, str]:
    """Return the two texts of a row: input and result, or reply and calls."""
    if mark.is_call:
        call = texts.calls[mark.pk]
        asked = [
            f"{step.tool} {format_arguments_line(step)}"
            for step in texts.steps_by_call.get(mark.pk, [])
        ]
        return call.reply.get("text", ""), "\n".join(asked)
    step = texts.steps[mark.pk]
    message = step.tool_input
    return message if isinstance(message, str) else indent_json(
        message
    ), step.observation


def format_arguments_line(step: AgentStep) -> str:
    return " ".join(indent_json(step.tool_input).split())


def build_compared_side(mark: RowDigest, texts: RowTexts) -> ComparedSide:
    if mark.is_call:
        call = texts.calls[mark.pk]
        words = summarize_reply(call.reply, purpose=call.purpose)
        icon = "edit" if mark.is_edited else "model"
        return ComparedSide(mark.number, icon, "", words)
    step = texts.steps[mark.pk]
    is_error = step.tool == "_Exception"
    result = summarize_result(step.observation)
    asked = "" if is_error else summarize_input(step.tool_input)
    icon = "alert" if step.status == "failed" else "tool"
    words = " → ".join(part for part in (asked, result) if part)
    name = "" if is_error else step.tool
    return ComparedSide(mark.number, "edit" if mark.is_edited else icon, name, words)


def describe_pair_difference(couple: RowPair) -> str:
    """Return how two rows differ, and by how much time."""
    a, b = couple
    if a is None or b is None:
        side = _("only B") if a is None else _("only A")
        seconds = (b.seconds if b else 0.0) - (a.seconds if a else 0.0)
        return ", ".join(filter(None, [side, format_time_difference(seconds)]))
    if couple.is_same:
        return format_time_difference(
            0.0 if b.is_copied or a.is_copied else b.seconds - a.seconds
        )
    if a.is_edited or b.is_edited:
        return _("edited")
    if a.is_call:
        return _("different reply")
    return _("different result") if a.token == b.token else _("different input")


def format_time_difference(seconds: float) -> str:
    """Write a difference in time; empty for less than 0.05 s."""
    if abs(seconds) < 0.05:
        return ""
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"
