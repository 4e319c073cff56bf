"""Sentences about the search for a failing version."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.services.experiments.bisect import BisectionReport
from tools.text.translatable import join_sentences


def describe_bisection(report: BisectionReport) -> str:
    """Say what the search has found, or between which versions it searches."""
    state, newest = report.state, report.versions[-1].number
    good = None if state.last_good is None else report.versions[state.last_good].number
    bad = None if state.first_bad is None else report.versions[state.first_bad].number
    match state.kind:
        case "found":
            return describe_found(report, good, bad)
        case "always":
            return describe_always(report, bad)
        case "not_reproduced":
            return (
                _("The draft passes now: the failure was not reproduced.")
                if newest is None
                else _("Version %(number)d passes now: the failure was not reproduced.")
                % {"number": newest}
            )
        case "unscored":
            return (
                _("The search ended: too few versions could be scored.")
                if bad is not None
                else _("The search ended: its first runs could not be scored.")
            )
    if good is None and any(one.outcome == "failed" for one in report.versions[:-1]):
        return _("The oldest version fails, too. Looking for a newer one that passes.")
    if good is None:
        return _("Checking that the example still fails, and that it once passed.")
    if bad is None:
        return _("Version %(good)d passes, the draft fails.") % {"good": good}
    return _("Version %(good)d passes, version %(bad)d fails.") % {
        "good": good,
        "bad": bad,
    }


def describe_found(report: BisectionReport, good: int | None, bad: int | None) -> str:
    """Say since when the example fails, and how many versions remain unknown."""
    first, last = report.state.last_good or 0, report.state.first_bad or 0
    unknown = last - first - 1
    values = {"good": good, "bad": bad, "count": unknown}
    if bad is None and not unknown:
        return _("Fails since the draft; version %(good)d passes.") % values
    if not unknown:
        return _("Fails since version %(bad)d; version %(good)d passes.") % values
    if bad is None:
        return (
            ngettext(
                "Version %(good)d passes, the draft fails; %(count)d version between "
                "them could not be scored.",
                "Version %(good)d passes, the draft fails; %(count)d versions between "
                "them could not be scored.",
                unknown,
            )
            % values
        )
    return (
        ngettext(
            "Version %(good)d passes, version %(bad)d fails; %(count)d version "
            "between them could not be scored.",
            "Version %(good)d passes, version %(bad)d fails; %(count)d versions "
            "between them could not be scored.",
            unknown,
        )
        % values
    )


def describe_always(report: BisectionReport, bad: int | None) -> str:
    """Say that no version passes, and how many were not run."""
    fails = (
        _("Fails in version %(number)s, the oldest one.")
        if report.state.first_bad == 0
        else _("Fails in version %(number)s; no older version could be scored.")
    )
    not_run = sum(one.outcome is None for one in report.versions)
    passes = (
        ngettext(
            "No version that was run passes; %(count)d version was not run.",
            "No version that was run passes; %(count)d versions were not run.",
            not_run,
        )
        if not_run
        else _("No version passes.")
    )
    return join_sentences([fails % {"number": bad}, passes % {"count": not_run}])


def describe_next_version(report: BisectionReport) -> str:
    """Name the version that runs now or next; empty at the end."""
    if report.state.probe is None:
        return ""
    number = report.versions[report.state.probe].number
    if number is None:
        return _("Running the draft.")
    return _("Running version %(number)d.") % {"number": number}
