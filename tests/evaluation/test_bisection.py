"""The search for the first failing version."""

import pytest

from runs.evaluation.versions.bisection import (
    MAX_PROBES,
    BisectionState,
    count_most_versions,
    judge_version,
    search_first_failure,
)


def search(count: int, outcome_of) -> tuple[BisectionState, list[int]]:
    """Run the search; return its end and the versions that were run."""
    outcomes, order = [None] * count, []
    while (state := search_first_failure(outcomes)).probe is not None:
        assert outcomes[state.probe] is None
        order.append(state.probe)
        outcomes[state.probe] = outcome_of(state.probe)
    return state, order


PAIRS = [(count, first) for count in (2, 3, 7, 16, 33) for first in range(1, count)]


@pytest.mark.parametrize(("count", "first"), PAIRS)
def test_finds_every_first_failing_version(count, first):
    state, order = search(count, lambda i: "failed" if i >= first else "passed")

    assert state == (None, "found", first - 1, first)
    assert len(order) <= 2 + (count - 2).bit_length()


def test_runs_the_failing_version_and_then_the_oldest_before_the_middle():
    _, order = search(9, lambda i: "failed" if i >= 3 else "passed")

    assert order == [8, 0, 4, 2, 3]


def test_ends_at_once_if_the_failure_cannot_be_reproduced():
    state, order = search(9, lambda _: "passed")

    assert (state.kind, order) == ("not_reproduced", [8])


def test_ends_at_once_if_the_failing_version_has_no_score():
    state, order = search(9, lambda _: "unscored")

    assert (state.kind, order) == ("unscored", [8])


def test_looks_backwards_for_a_version_that_passes_if_the_oldest_fails():
    state, order = search(17, lambda i: "passed" if 3 <= i < 13 else "failed")

    assert (state.kind, state.last_good, state.first_bad) == ("found", 12, 13)
    assert order == [16, 0, 15, 14, 12, 13]


@pytest.mark.parametrize(("count", "first"), PAIRS)
def test_names_the_last_change_after_an_oldest_version_that_fails(count, first):
    state, order = search(count, lambda i: "passed" if 0 < i < first else "failed")

    is_reached = any(0 < count - 1 - 2**n < first for n in range(count))
    assert (state.kind == "found") >= is_reached
    assert state.kind == "always" or state[2:] == (first - 1, first)
    assert len(order) <= count_most_versions(count)


@pytest.mark.parametrize(
    ("count", "order"),
    [
        pytest.param(2, [1, 0], id="two"),
        pytest.param(6, [5, 0, 4, 3, 1, 2], id="all-run"),
        pytest.param(12, [11, 0, 10, 9, 7, 3, 8, 6], id="some-not-run"),
    ],
)
def test_says_that_no_version_it_ran_passes(count, order):
    state, tried = search(count, lambda _: "failed")

    assert (state.kind, state.first_bad, tried) == ("always", 0, order)


def test_skips_versions_that_cannot_be_scored():
    state, _ = search(
        9, lambda i: "unscored" if i in (0, 4, 5) else "failed" if i > 3 else "passed"
    )

    assert (state.kind, state.last_good, state.first_bad) == ("found", 3, 6)


def test_names_the_oldest_version_with_a_score_if_all_of_those_fail():
    state, order = search(4, lambda i: "unscored" if i < 2 else "failed")

    assert (state.kind, state.first_bad, order) == ("always", 2, [3, 0, 1, 2])


def test_says_that_no_earlier_version_could_be_scored():
    state, _ = search(3, lambda i: "failed" if i == 2 else "unscored")

    assert state.kind == "unscored"


def test_does_not_run_hundreds_of_versions_that_cannot_be_scored():
    state, order = search(500, lambda i: "failed" if i == 499 else "unscored")

    assert (state.kind, len(order)) == ("unscored", MAX_PROBES)


@pytest.mark.parametrize(
    ("passed", "outcome"),
    [
        pytest.param([True], "passed", id="one"),
        pytest.param([True, False, True], "passed", id="most"),
        pytest.param([True, False], "failed", id="half"),
        pytest.param([False, None, None], "failed", id="one-score"),
        pytest.param([None, None], "unscored", id="none"),
    ],
)
def test_a_version_passes_if_most_of_its_scored_runs_do(passed, outcome):
    assert judge_version(passed) == outcome
