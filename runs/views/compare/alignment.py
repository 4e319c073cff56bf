"""Alignment of the rows of two runs."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tools.ui.diff import count_shared_ends

MAX_EXACT_PRODUCT = 10_000
"""Product of the lengths of two stretches that are aligned optimally."""
LOOK_AHEAD = 40
"""Rows of a longer stretch that are searched for a match."""

EXACT_SCORE, SIMILAR_SCORE = 5, 2
"""Scores of equal rows, and of rows of the same kind, side by side."""


class RowToken(NamedTuple):
    """What a row did, short enough to compare thousands of rows."""

    name: str
    """The tool; empty for the model."""
    exact: str
    """Tool and input, or the reply, as a digest."""


class AlignedPair(NamedTuple):
    """Positions in both runs; None if a run has no such row."""

    a: int | None
    b: int | None


def align_rows(one: Sequence[RowToken], other: Sequence[RowToken]) -> list[AlignedPair]:
    """Return every row of both, in order, equal and similar ones side by side.

    Takes time in proportion to the length, however different the runs are.
    """
    start, end = count_shared_ends(one, other)
    inner = align_between_anchors(
        one[start : len(one) - end], other[start : len(other) - end]
    )
    middle = [
        AlignedPair(
            None if pair.a is None else pair.a + start,
            None if pair.b is None else pair.b + start,
        )
        for pair in inner
    ]
    tail = range(end, 0, -1)
    return [
        *(AlignedPair(place, place) for place in range(start)),
        *middle,
        *(AlignedPair(len(one) - place, len(other) - place) for place in tail),
    ]


def align_between_anchors(
    one: Sequence[RowToken], other: Sequence[RowToken]
) -> list[AlignedPair]:
    """Align between the rows that both runs have exactly once."""
    pairs: list[AlignedPair] = []
    i = j = 0
    for a, b in [*find_anchors(one, other), (len(one), len(other))]:
        for pair in align_stretch(one[i:a], other[j:b]):
            x = None if pair.a is None else pair.a + i
            y = None if pair.b is None else pair.b + j
            pairs.append(AlignedPair(x, y))
        if a < len(one):
            pairs.append(AlignedPair(a, b))
        i, j = a + 1, b + 1
    return pairs


def find_anchors(
    one: Sequence[RowToken], other: Sequence[RowToken]
) -> list[tuple[int, int]]:
    """Return positions of rows that are unique in both, as many as are in order."""
    mine, theirs = Counter(one), Counter(other)
    places = {token: place for place, token in enumerate(other) if theirs[token] == 1}
    found = [
        (place, places[token])
        for place, token in enumerate(one)
        if mine[token] == 1 and token in places
    ]
    return find_longest_increasing(found)


def find_longest_increasing(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part whose second positions increase."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for place, (_, b) in enumerate(found):
        size = bisect_left(tops, b)
        before.append(ends[size - 1] if size else -1)
        if size == len(tops):
            tops.append(b)
            ends.append(place)
        else:
            tops[size], ends[size] = b, place
    chain: list[tuple[int, int]] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        chain.append(found[place])
        place = before[place]
    return chain[::-1]


def score_tokens(one: RowToken, other: RowToken) -> int:
    if one == other:
        return EXACT_SCORE
    return SIMILAR_SCORE if one.name == other.name else 0


def align_stretch(
    one: Sequence[RowToken], other: Sequence[RowToken]
) -> list[AlignedPair]:
    """Align two stretches, optimally if they are short, else greedily."""
    if not one or not other:
        return [
            *(AlignedPair(place, None) for place in range(len(one))),
            *(AlignedPair(None, place) for place in range(len(other))),
        ]
    if len(one) * len(other) > MAX_EXACT_PRODUCT:
        return align_greedily(one, other)
    return align_optimally(one, other)


def align_optimally(
    one: Sequence[RowToken], other: Sequence[RowToken]
) -> list[AlignedPair]:
    """Return the alignment with the highest score."""
    n, m = len(one), len(other)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            both = score_tokens(one[i], other[j])
            with_both = table[i + 1][j + 1] + both if both else 0
            table[i][j] = max(with_both, table[i + 1][j], table[i][j + 1])
    pairs: list[AlignedPair] = []
    i = j = 0
    while i < n and j < m:
        both = score_tokens(one[i], other[j])
        if both and table[i][j] == table[i + 1][j + 1] + both:
            pairs.append(AlignedPair(i, j))
            i, j = i + 1, j + 1
        elif table[i][j] == table[i + 1][j]:
            pairs.append(AlignedPair(i, None))
            i += 1
        else:
            pairs.append(AlignedPair(None, j))
            j += 1
    pairs += [AlignedPair(place, None) for place in range(i, n)]
    return pairs + [AlignedPair(None, place) for place in range(j, m)]


def align_greedily(
    one: Sequence[RowToken], other: Sequence[RowToken]
) -> list[AlignedPair]:
    """Return an alignment of each row with the next nearby match."""
    pairs: list[AlignedPair] = []
    j = 0
    for i, token in enumerate(one):
        near = other[j : j + LOOK_AHEAD]
        fit = next((k for k, found in enumerate(near) if found == token), None)
        if fit is None and near and near[0].name == token.name:
            fit = 0
        if fit is None:
            pairs.append(AlignedPair(i, None))
            continue
        pairs += [AlignedPair(None, place) for place in range(j, j + fit)]
        pairs.append(AlignedPair(i, j + fit))
        j += fit + 1
    return pairs + [AlignedPair(None, place) for place in range(j, len(other))]
