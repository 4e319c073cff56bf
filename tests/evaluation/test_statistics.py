"""Rates with intervals, percentiles, agreement, and paired comparisons."""

import math
import random
from itertools import combinations
from statistics import fmean

import pytest

from runs.evaluation import comparison
from runs.evaluation.comparison import (
    CLEAR_LEVEL,
    bootstrap_interval,
    compare_paired,
    sign_test,
    smallest_visible_points,
)
from runs.evaluation.statistics import (
    compute_agreement,
    pass_at_k,
    pass_hat_k,
    percentile,
    wilson_interval,
)
from tests.evaluation.power import detection_power


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [  # Newcombe 1998, table I, method 3, and Wilson's own zero and full cases
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_of_a_rate_is_that_of_the_literature(passed, total, low, high):
    interval = wilson_interval(passed, total)

    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


def test_impossible_counts_are_refused():
    for passed, total in ((-1, 3), (4, 3)):
        with pytest.raises(ValueError, match="cannot have passed"):
            wilson_interval(passed, total)


@pytest.mark.parametrize("passed", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_pass_at_k_counts_all_selections(passed, k):
    runs = [True] * passed + [False] * (5 - passed)
    picked = list(combinations(runs, k))

    assert pass_at_k(passed, 5, k) == pytest.approx(sum(map(any, picked)) / len(picked))
    assert pass_hat_k(passed, 5, k) == pytest.approx(
        sum(map(all, picked)) / len(picked)
    )


def test_more_repetitions_than_there_are_say_nothing():
    assert pass_at_k(2, 3, 4) is None
    assert pass_hat_k(2, 3, 0) is None


def test_percentiles_are_interpolated():
    assert percentile([4, 1, 3, 2], 0.5) == 2.5
    assert percentile([7], 0.95) == 7
    assert percentile([], 0.5) is None
    assert percentile([0, 10], 0.95) == pytest.approx(9.5)


@pytest.mark.parametrize(
    ("one", "other", "kappa"),
    [  # kappa by scikit-learn 1.9.1
        ("ffffffppff", "pfffffppff", 0.736842105263),
        ("fpfppfppffpfffpffffpppppp", "ppppfpppffpffffffpfpfpppp", 0.43729903537),
        (
            "bcbabcabbaacacacbcabcabcacbaba",
            "ccbaccbbbabcccacbcaacabaaccabc",
            0.55298013245,
        ),
        (
            "1234525452153422234222535153221512521434",
            "5434315422123122234252335153351513225434",
            0.55766192733,
        ),
        ("fff", "fpf", 0.0),
        ("ppff", "ffpp", -1.0),
        ("pppp", "pppf", 0.0),
        ("pppp", "pppp", None),
    ],
)
def test_agreement_is_that_of_scikit_learn(one, other, kappa):
    found = compute_agreement(one, other)

    same = sum(a == b for a, b in zip(one, other, strict=True))
    assert (found.runs, found.same) == (len(one), same / len(one))
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))


def test_agreement_needs_the_same_runs():
    assert compute_agreement([], []) is None
    with pytest.raises(ValueError, match="the same runs"):
        compute_agreement("a", "ab")


@pytest.mark.parametrize(
    ("better", "worse", "p_value"),
    [(0, 0, 1), (1, 0, 1), (1, 1, 1), (5, 0, 0.0625), (10, 2, 0.03857421875)],
)
def test_the_sign_test_is_a_binomial_test(better, worse, p_value):
    assert sign_test(better, worse) == pytest.approx(p_value)
    assert sign_test(worse, better) == pytest.approx(p_value)


def test_a_comparison_is_repeatable_and_counts_pairs():
    before = [1.0, 1, 1, 0, 0.5, 0.2]
    after = [0.0, 1, 1, 1, 0.5, 0.1]

    one = compare_paired(before, after, seed=3)

    assert one == compare_paired(before, after, seed=3)
    assert (one.better, one.worse, one.same) == (1, 2, 3)
    assert one.difference == pytest.approx(-0.1 / 6)
    assert one.conclusion.kind == "could_be_chance"
    assert one.interval.low < one.difference < one.interval.high


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ([], [], "nothing_to_compare"),
        ([1.0] * 9, [1.0] * 9, "no_difference"),
        ([0.1 + 0.2] * 9, [0.3] * 9, "no_difference"),
        ([1.0] * 40, [0.0] * 8 + [1.0] * 32, "clearly_worse"),
        ([0.0] * 40, [1.0] * 8 + [0.0] * 32, "clearly_better"),
        ([1.0] * 40, [0.0] * 5 + [1.0] * 35, "probably_worse"),
        ([1.0] * 40, [0.0] * 2 + [1.0] * 38, "could_be_chance"),
    ],
)
def test_the_conclusion_says_how_sure_it_is(before, after, kind):
    assert compare_paired(before, after, seed=1).conclusion.kind == kind


@pytest.mark.parametrize("examples", [5, 7, 40, 300, 301])
@pytest.mark.parametrize("change", [-1.0, 0.0, 0.05, 1.0])
def test_equal_changes_give_no_certainty(examples, change):
    interval = bootstrap_interval([change] * examples, seed=1)

    assert interval.low <= change <= interval.high
    assert interval.high - interval.low > (abs(change) or 1) / examples
    assert (interval.low > 0, interval.high < 0) == (change > 0, change < 0)


@pytest.mark.parametrize("examples", range(5))
def test_too_few_examples_have_no_interval(examples):
    assert bootstrap_interval([-1.0] * examples, seed=1) == (-1, 1)


@pytest.mark.parametrize("examples", [5, 6, 8, 10, 20, 40, 100])
@pytest.mark.parametrize("worse", [3, 4])
def test_an_interval_without_zero_is_not_called_chance(examples, worse):
    changes = [-1.0] * worse + [0.0] * (examples - worse)

    assert bootstrap_interval(changes, seed=1).high >= 0
    compared = compare_paired([0.0] * examples, changes, seed=1)
    assert compared.conclusion.kind == "could_be_chance"


def test_many_examples_need_no_resampling():
    draw = random.Random(1)
    changes = [draw.choice((-1.0, 0.0, 0.0, 1.0)) for _ in range(10_000)]

    few, many = (
        bootstrap_interval(changes[:300], seed=1),
        bootstrap_interval(changes, seed=1),
    )

    width = (few.high - few.low) / (many.high - many.low)
    assert width == pytest.approx(math.sqrt(10_000 / 300), rel=0.1)


@pytest.mark.parametrize(("examples", "points"), [(6, 100), (7, 100), (40, 17.5)])
def test_few_examples_cannot_show_small_differences(examples, points):
    assert smallest_visible_points(examples) == points


@pytest.fixture
def few_resamples(monkeypatch):
    """Resample less often, which only adds noise to each of many intervals."""
    monkeypatch.setattr(comparison, "RESAMPLES", 300)


def simulate(draw, *, examples, both, rise, fall):
    """Return passes of baseline and candidate, drawn with the given chances."""
    pairs = draw.choices(
        [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)],
        [both, rise, fall, 1 - both - rise - fall],
        k=examples,
    )
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("examples", [20, 40, 100])
def test_two_equal_candidates_raise_at_most_five_false_alarms_of_100(examples):
    draw = random.Random(examples)
    clear = hedged = 0
    for seed in range(100):
        before, after = simulate(
            draw, examples=examples, both=0.6, rise=0.15, fall=0.15
        )
        kind = compare_paired(before, after, seed=seed).conclusion.kind
        clear += kind.startswith("clearly")
        hedged += kind.startswith("probably")

    assert clear <= 5
    assert hedged <= 7


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize("scores", ["pass", "value"])
def test_equal_candidates_with_repetitions_and_values_raise_few_alarms(
    scores, repetitions
):
    draw = random.Random(f"{scores} 3 {repetitions}")

    def run(ease: float) -> float:
        if scores == "pass":
            return float(draw.random() < ease)
        return min(max(draw.gauss(ease, 0.2), 0.0), 1.0)

    def run_all(eases: list[float]) -> list[float]:
        return [fmean(run(ease) for _ in range(repetitions)) for ease in eases]

    of_one = of_three = 0
    for seed in range(100):
        eases = [draw.random() for _ in range(30)]
        before = run_all(eases)
        others = [run_all(eases) for _ in range(3)]
        kinds = [
            compare_paired(before, one, seed=seed).conclusion.kind for one in others
        ]
        clear = [kind.startswith("clearly") for kind in kinds]
        of_one += clear[0]
        of_three += any(clear)

    assert of_one <= 5
    assert of_three <= 5


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.slow
def test_equal_candidates_raise_few_alarms_on_ten_tags():
    draw = random.Random(10)
    alarms = 0
    for seed in range(100):
        kinds = []
        for _ in range(10):
            before, after = simulate(draw, examples=25, both=0.6, rise=0.15, fall=0.15)
            compared = compare_paired(before, after, seed=seed, level=CLEAR_LEVEL / 10)
            kinds.append(compared.conclusion.kind)
        alarms += any(kind.startswith("clearly") for kind in kinds)

    assert alarms <= 5


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize(
    ("examples", "rise", "fall"), [(40, 0.02, 0.22), (100, 0.25, 0.1), (60, 0, 0.15)]
)
def test_a_known_difference_is_found_at_the_stated_power(examples, rise, fall):
    draw = random.Random(7)
    power = detection_power(examples, rise=rise, fall=fall)
    wanted = "clearly_better" if rise > fall else "clearly_worse"
    found = 0
    for seed in range(80):
        before, after = simulate(
            draw, examples=examples, both=0.6, rise=rise, fall=fall
        )
        found += compare_paired(before, after, seed=seed).conclusion.kind == wanted

    assert 0.3 < power < 0.999
    assert found / 80 == pytest.approx(power, abs=0.12)


def test_equal_candidates_have_a_power_below_the_level():
    assert detection_power(200, rise=0.1, fall=0.1) < CLEAR_LEVEL
