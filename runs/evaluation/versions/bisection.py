"""Binary search for the version at which an example began to fail."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

MAX_PROBES = 24
"""Versions that are run at most; enough for millions that can be scored."""

Outcome = Literal["passed", "failed", "unscored"]
BisectionKind = Literal["found", "always", "not_reproduced", "unscored"]


class BisectionState(NamedTuple):
    """What is known; indexes count versions from the oldest one."""

    probe: int | None
    """The version to run next; None if the search is over."""
    kind: BisectionKind | None = None
    """How the search ended; None until then."""
    last_good: int | None = None
    first_bad: int | None = None
    """The oldest version that is known to fail after `last_good`."""


def judge_version(passed: Sequence[bool | None]) -> Outcome:
    """Judge a version by its runs: most of those with a score must have passed."""
    decided = [one for one in passed if one is not None]
    if not decided:
        return "unscored"
    return "passed" if 2 * sum(decided) > len(decided) else "failed"


def search_first_failure(outcomes: Sequence[Outcome | None]) -> BisectionState:
    """Return what to run next; `outcomes` has a None for each version not yet run.

    The last version is run first, to see that it still fails, then the oldest one. If
    that fails, too, the newest version that passes is searched for.
    A version that cannot be scored is skipped, as `git bisect skip` does.
    """
    last = len(outcomes) - 1
    match outcomes[last]:
        case None:
            return BisectionState(last)
        case "passed":
            return BisectionState(None, "not_reproduced", last_good=last)
        case "unscored":
            return BisectionState(None, "unscored")
    is_at_limit = sum(one is not None for one in outcomes) >= MAX_PROBES
    good = max((i for i, one in enumerate(outcomes) if one == "passed"), default=None)
    if good is None:
        return search_newest_pass(outcomes, is_at_limit=is_at_limit)
    bad = next(i for i in range(good + 1, last + 1) if outcomes[i] == "failed")
    untried = [i for i in range(good + 1, bad) if outcomes[i] is None]
    if not untried:
        return BisectionState(None, "found", good, bad)
    middle = min(untried, key=lambda i: abs(2 * i - good - bad))
    return end_or_probe(middle, good, bad, is_at_limit=is_at_limit)


def search_newest_pass(
    outcomes: Sequence[Outcome | None], *, is_at_limit: bool
) -> BisectionState:
    """Return what to run next while no version is known to pass, and the last fails.

    The oldest one may fail because it could not do yet what the example asks for. So
    newer ones are run then, until one passes or as many as announced have a score.
    """
    last = len(outcomes) - 1
    oldest = next(i for i, one in enumerate(outcomes) if one != "unscored")
    if oldest == last:
        return BisectionState(None, "unscored", first_bad=last)
    if outcomes[oldest] is None:
        return end_or_probe(oldest, None, last, is_at_limit=is_at_limit)
    scored = sum(one in ("passed", "failed") for one in outcomes)
    untried = [i for i in list_backwards(last) if outcomes[i] is None]
    if not untried or is_at_limit or scored >= count_most_versions(len(outcomes)):
        return BisectionState(None, "always", first_bad=oldest)
    return BisectionState(untried[0], None, None, last)


def list_backwards(last: int) -> list[int]:
    """Return all before `last`: 1, 2, 4, 8... before it, then the others, newest first.

    Each step is twice as long as the one before it, so few versions remain between
    the first one that passes and the last one that fails.
    """
    steps = [2**n for n in range(last.bit_length()) if 2**n <= last]
    others = [step for step in range(1, last + 1) if step not in steps]
    return [last - step for step in (*steps, *others)]


def count_most_versions(versions: int) -> int:
    """Return how many versions are run at most, if all of them can be scored."""
    steps = max(versions - 2, 0).bit_length()
    return min(2 + steps + max(steps - 2, 0), MAX_PROBES)


def end_or_probe(
    probe: int, good: int | None, bad: int, *, is_at_limit: bool
) -> BisectionState:
    """Run `probe` next, or end the search if the limit of versions is reached."""
    if not is_at_limit:
        return BisectionState(probe, None, good, bad)
    return BisectionState(None, "unscored" if good is None else "found", good, bad)
