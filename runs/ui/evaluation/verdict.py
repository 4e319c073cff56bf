"""Sentences about the result of an experiment."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.evaluation.comparison import LEAST_CLEAR
from runs.services.experiments.figures import (
    CandidateFigures,
    ComparisonFigures,
    ExperimentFigures,
)
from runs.ui.format import number

LETTERS = ascii_uppercase
"""Names of candidates; more than an experiment or a bisection has."""
UNCERTAIN = ("nothing_to_compare", "no_difference", "could_be_chance")
"""Conclusions that more runs may still change."""


def describe_comparison(
    compared: ComparisonFigures, *, letter: str, is_early: bool
) -> str:
    """Say how a candidate does against the baseline, which is A."""
    values = {
        "letter": letter,
        "better": number(compared.better),
        "worse": number(compared.worse),
        "examples": number(compared.examples),
    }
    if is_early and compared.kind in UNCERTAIN:
        return _("Too early to compare %(letter)s with A.") % values
    match compared.kind:
        case "nothing_to_compare":
            return _("No example has a score of both A and %(letter)s.") % values
        case "no_difference":
            return (
                ngettext(
                    "%(letter)s does the same as A on %(examples)s example.",
                    "%(letter)s does the same as A on all %(examples)s examples.",
                    compared.examples,
                )
                % values
            )
        case "probably_better":
            text = _(
                "%(letter)s may be better than A, but %(examples)s examples are too "
                "few to be sure: %(better)s improved, %(worse)s regressed."
            )
        case "probably_worse":
            text = _(
                "%(letter)s may be worse than A, but %(examples)s examples are too "
                "few to be sure: %(better)s improved, %(worse)s regressed."
            )
        case "clearly_better":
            text = _(
                "%(letter)s is clearly better than A: %(better)s improved, %(worse)s "
                "regressed."
            )
        case "clearly_worse":
            text = _(
                "%(letter)s is clearly worse than A: %(better)s improved, %(worse)s "
                "regressed."
            )
        case _other:
            text = _(
                "The difference between A and %(letter)s could be chance: %(better)s "
                "of %(examples)s examples improved, %(worse)s regressed."
            )
    return text % values


def describe_clear_tags(
    figures: ExperimentFigures, letters: Mapping[int, str]
) -> list[str]:
    """Say on which tags a candidate is clearly better or worse than the baseline.

    A tag that all compared examples have says no more than the comparison itself.
    """
    examples = {one.candidate: one.examples for one in figures.comparisons}
    words = {
        "clearly_worse": _(
            "%(letter)s is clearly worse on %(tag)s: %(better)s improved, %(worse)s "
            "regressed."
        ),
        "clearly_better": _(
            "%(letter)s is clearly better on %(tag)s: %(better)s improved, %(worse)s "
            "regressed."
        ),
    }
    return [
        words[one.kind]
        % {
            "letter": letters[one.candidate],
            "tag": each.tag,
            "better": number(one.better),
            "worse": number(one.worse),
        }
        for kind in words  # what got worse comes first
        for each in figures.tags
        for one in each.comparisons
        if one.kind == kind and one.examples < examples[one.candidate]
    ]


def describe_failed_runs(
    figures: Sequence[CandidateFigures], letters: Mapping[int, str]
) -> list[str]:
    """Say for each candidate how many runs failed; the comparison leaves them out."""
    return [
        ngettext(
            "%(failed)s of %(total)s runs of %(letter)s failed and is left out.",
            "%(failed)s of %(total)s runs of %(letter)s failed and are left out.",
            one.failed,
        )
        % {
            "failed": number(one.failed),
            "total": number(one.total),
            "letter": letters[one.candidate],
        }
        for one in figures
        if one.failed
    ]


def describe_unscored_runs(
    figures: Sequence[CandidateFigures], letters: Mapping[int, str]
) -> str:
    """Say how many runs of each candidate have no score; empty if all have one.

    Runs that failed another evaluator have a verdict, so all of these may have passed.
    """
    found = [one for one in figures if one.not_scored]
    if not found:
        return ""
    total = sum(one.not_scored for one in found)
    parts = (f"{letters[one.candidate]} {number(one.not_scored)}" for one in found)
    return ngettext(
        "%(count)s run has no score and is left out, though it may have passed: "
        "%(parts)s.",
        "%(count)s runs have no score and are left out, though they may have passed: "
        "%(parts)s.",
        total,
    ) % {"count": number(total), "parts": ", ".join(parts)}


def describe_one_candidate(figures: CandidateFigures) -> str:
    """Say how many runs passed if there is nothing to compare with."""
    if not figures.decided:
        return _("No run has passed or failed yet.")
    return ngettext(
        "%(passed)s of %(count)s run passed.",
        "%(passed)s of %(count)s runs passed.",
        figures.decided,
    ) % {"passed": number(figures.passed), "count": number(figures.decided)}


def describe_visible_difference(compared: ComparisonFigures) -> str:
    """Say how small a difference so many examples cannot show."""
    if compared.examples < LEAST_CLEAR:
        return _(
            "Paired by example. A clear difference needs at least %(least)s examples."
        ) % {"least": LEAST_CLEAR}
    return _(
        "Paired by example. A difference under %(points)s points needs more than "
        "%(examples)s examples."
    ) % {
        "points": round(compared.smallest_points),
        "examples": number(compared.examples),
    }
