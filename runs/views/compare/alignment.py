"""Which row of one run stands beside which row of another."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from runs.views.text_difference import shared_ends

MOST_AT_ONCE = 10_000
"""Product of the lengths of two stretches that are fitted exactly."""
LOOK_AHEAD = 40
"""How far a longer stretch is searched for the next row that fits."""

EXACT, ALIKE = 5, 2
"""What it is worth to put equal rows, or rows of the same kind, side by side."""


class Token(NamedTuple):
    """What a row did, short enough to compare thousands."""

    name: str
    """The tool; empty for the model."""
    exact: str
    """Tool and input, or the reply, as a digest."""


class Pair(NamedTuple):
    """Places in both runs; None where a run has no such row."""

    a: int | None
    b: int | None


def align(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Return every row of both, in order, equal and similar ones side by side.

    Takes time in proportion to the length, however different the runs are.
    """
    start, end = shared_ends(one, other)
    inner = aligned(one[start : len(one) - end], other[start : len(other) - end])
    middle = [
        Pair(
            None if pair.a is None else pair.a + start,
            None if pair.b is None else pair.b + start,
        )
        for pair in inner
    ]
    tail = range(end, 0, -1)
    return [
        *(Pair(place, place) for place in range(start)),
        *middle,
        *(Pair(len(one) - place, len(other) - place) for place in tail),
    ]


def aligned(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Align between the rows that both runs have exactly once."""
    pairs: list[Pair] = []
    i = j = 0
    for a, b in [*anchors(one, other), (len(one), len(other))]:
        for pair in fitted(one[i:a], other[j:b]):
            x = None if pair.a is None else pair.a + i
            y = None if pair.b is None else pair.b + j
            pairs.append(Pair(x, y))
        if a < len(one):
            pairs.append(Pair(a, b))
        i, j = a + 1, b + 1
    return pairs


def anchors(one: Sequence[Token], other: Sequence[Token]) -> list[tuple[int, int]]:
    """Return places of rows that are unique in both, as many as stay in order."""
    mine, theirs = Counter(one), Counter(other)
    places = {token: place for place, token in enumerate(other) if theirs[token] == 1}
    found = [
        (place, places[token])
        for place, token in enumerate(one)
        if mine[token] == 1 and token in places
    ]
    return longest_rising(found)


def longest_rising(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part whose second places rise."""
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


def worth(one: Token, other: Token) -> int:
    """Return how well two rows stand side by side."""
    if one == other:
        return EXACT
    return ALIKE if one.name == other.name else 0


def fitted(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Align two stretches: the best way where they are short, else a quick one."""
    if not one or not other:
        return [
            *(Pair(place, None) for place in range(len(one))),
            *(Pair(None, place) for place in range(len(other))),
        ]
    if len(one) * len(other) > MOST_AT_ONCE:
        return quickly(one, other)
    return best(one, other)


def best(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Return the alignment of the highest worth."""
    n, m = len(one), len(other)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            both = worth(one[i], other[j])
            with_both = table[i + 1][j + 1] + both if both else 0
            table[i][j] = max(with_both, table[i + 1][j], table[i][j + 1])
    pairs: list[Pair] = []
    i = j = 0
    while i < n and j < m:
        both = worth(one[i], other[j])
        if both and table[i][j] == table[i + 1][j + 1] + both:
            pairs.append(Pair(i, j))
            i, j = i + 1, j + 1
        elif table[i][j] == table[i + 1][j]:
            pairs.append(Pair(i, None))
            i += 1
        else:
            pairs.append(Pair(None, j))
            j += 1
    pairs += [Pair(place, None) for place in range(i, n)]
    return pairs + [Pair(None, place) for place in range(j, m)]


def quickly(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Return a fair alignment: each row goes to the next one that fits nearby."""
    pairs: list[Pair] = []
    j = 0
    for i, token in enumerate(one):
        near = other[j : j + LOOK_AHEAD]
        fit = next((k for k, found in enumerate(near) if found == token), None)
        if fit is None and near and near[0].name == token.name:
            fit = 0
        if fit is None:
            pairs.append(Pair(i, None))
            continue
        pairs += [Pair(None, place) for place in range(j, j + fit)]
        pairs.append(Pair(i, j + fit))
        j += fit + 1
    return pairs + [Pair(None, place) for place in range(j, len(other))]
