"""What differs between two answers, marked by word."""

from collections.abc import Iterator

from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.ui.reveal_invisible import reveal_text
from tools.ui.diff import WORD_PATTERN, DiffBudget, iter_diff_spans

MAX_DIFF_CHARS = 20_000
MAX_COMPARISONS = 1_500_000
"""A fraction of a second, also for a model that has repeated a word until its limit."""


def mark_differences(expected: str, answer: str) -> SafeString:
    """Mark what differs by word; in long texts without equal lines, as a whole."""
    budget = DiffBudget(left=MAX_COMPARISONS, most_at_once=MAX_COMPARISONS)
    before = expected[:MAX_DIFF_CHARS].splitlines(keepends=True)
    after = answer[:MAX_DIFF_CHARS].splitlines(keepends=True)
    parts: list[SafeString] = []
    for span in iter_diff_spans(before, after, budget):
        old = "".join(before[span.a1 : span.a2])
        new = "".join(after[span.b1 : span.b2])
        parts += [reveal_text(old)] if span.is_same else mark_words(old, new, budget)
    return SafeString("".join(parts))


def mark_words(old: str, new: str, budget: DiffBudget) -> Iterator[SafeString]:
    before, after = WORD_PATTERN.findall(old), WORD_PATTERN.findall(new)
    for span in iter_diff_spans(before, after, budget):
        removed = "".join(before[span.a1 : span.a2])
        added = "".join(after[span.b1 : span.b2])
        if span.is_same:
            yield reveal_text(removed)
            continue
        if removed:
            yield format_html("<del>{}</del>", reveal_text(removed))
        if added:
            yield format_html("<ins>{}</ins>", reveal_text(added))
