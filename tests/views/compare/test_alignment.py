"""Which rows of two runs stand side by side."""

import random

import pytest

from runs.views.compare.alignment import RowToken, align_rows


def tokens(words: str) -> list[RowToken]:
    """Return a token for each word: `name:exact`, or `exact` for the model."""
    split = (word.rpartition(":") for word in words.split())
    return [RowToken(name, exact) for name, _, exact in split]


def side_by_side(one: str, other: str) -> list[str]:
    a, b = tokens(one), tokens(other)
    return [
        f"{'-' if p.a is None else a[p.a].exact}{'-' if p.b is None else b[p.b].exact}"
        for p in align_rows(a, b)
    ]


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        pytest.param("", "", [], id="both empty"),
        pytest.param("1 2", "", ["1-", "2-"], id="one empty"),
        pytest.param("1 t:2 3", "1 t:2 3", ["11", "22", "33"], id="equal"),
        pytest.param("1 t:2 3", "1 t:4 3", ["11", "24", "33"], id="other input"),
        pytest.param("1 t:2 3", "1 u:4 3", ["11", "2-", "-4", "33"], id="other tool"),
        pytest.param("1 t:2 3", "1 3", ["11", "2-", "33"], id="only in a"),
        pytest.param(
            "1 t:2 3", "1 t:2 4 t:5 3", ["11", "22", "-4", "-5", "33"], id="only in b"
        ),
        pytest.param(
            "1 1 1 t:2", "1 1 t:2", ["11", "11", "1-", "22"], id="repeated rows"
        ),
    ],
)
def test_puts_equal_and_similar_rows_side_by_side(one, other, pairs):
    assert side_by_side(one, other) == pairs


@pytest.mark.parametrize("seed", range(20))
def test_keeps_every_row_once_and_in_order(seed):
    rng = random.Random(seed)
    size = rng.choice([5, 60, 400])

    def some() -> list[RowToken]:
        return [
            RowToken(rng.choice(["", "t", "u"]), str(rng.randint(0, size)))
            for _ in range(rng.randint(0, size))
        ]

    one, other = some(), some()
    pairs = align_rows(one, other)

    assert [p.a for p in pairs if p.a is not None] == list(range(len(one)))
    assert [p.b for p in pairs if p.b is not None] == list(range(len(other)))
    assert all(
        one[p.a].name == other[p.b].name
        for p in pairs
        if p.a is not None and p.b is not None
    )


def test_two_long_runs_without_one_equal_row_are_aligned():
    one = [RowToken("t", f"a{n % 7}") for n in range(20_000)]
    other = [RowToken("t", f"b{n % 5}") for n in range(20_000)]

    assert len(align_rows(one, other)) == 20_000
