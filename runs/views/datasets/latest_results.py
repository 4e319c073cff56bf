"""What the latest candidates of experiments made of the examples of a dataset."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext as _

from runs.models import Dataset, Example, Experiment, ExperimentCandidate, ExperimentRun

LATEST = 3
"""Candidates whose results the table of examples shows."""
State = ExperimentRun.State


class LatestResult(NamedTuple):
    """The result of one candidate for one example, over all repetitions."""

    cell: int | None
    """Key of its first run; None if the candidate has not run the example."""
    experiment: int
    mark: str
    """A key of `runs.ui.evaluation.score_marks.MARKS`."""
    words: str


def load_latest_results(
    dataset: Dataset, examples: Sequence[Example], user: User | AnonymousUser
) -> dict[int, list[LatestResult]]:
    """Return the results by key of the example, those of the newest candidate last.

    An example that was edited since has none: its results are those of another one.
    """
    experiments = Experiment.objects.visible_to(user).filter(
        dataset=dataset, bisection=None
    )
    rows = ExperimentCandidate.objects.filter(experiment__in=experiments)
    candidates = list(rows.order_by("-experiment_id", "-position")[:LATEST])[::-1]
    cells = ExperimentRun.objects.filter(
        candidate__in=candidates, example__in=examples
    ).only("example_id", "candidate_id", "state", "passed", "score", "run_status")
    found = defaultdict[tuple[int, int], list[ExperimentRun]](list)
    for cell in cells.order_by("repetition"):
        found[cell.example_id, cell.candidate_id].append(cell)
    ran = {example for example, _candidate in found}
    return {
        pk: [build_latest_result(one, found[pk, one.pk]) for one in candidates]
        for pk in ran
    }


def build_latest_result(
    candidate: ExperimentCandidate, cells: Sequence[ExperimentRun]
) -> LatestResult:
    mark, word = describe_result(cells)
    words = _("%(candidate)s, experiment %(number)s: %(result)s") % {
        "candidate": candidate.label,
        "number": candidate.experiment_id,
        "result": word,
    }
    return LatestResult(
        cells[0].pk if cells else None, candidate.experiment_id, mark, words
    )


def describe_result(cells: Sequence[ExperimentRun]) -> tuple[str, str]:
    """Return the mark and the word; a candidate passes if all its runs do."""
    if not cells:
        return "", _("not run")
    if any(cell.state in (State.WAITING, State.STARTED) for cell in cells):
        return "n", _("not ended yet")
    decided = [cell.passed for cell in cells if cell.passed is not None]
    if decided:
        return ("p", _("passed")) if all(decided) else ("f", _("not passed"))
    if any(cell.score is not None for cell in cells):
        return "s", _("scored")
    if any(cell.run_status in ("failed", "canceled", "") for cell in cells):
        return "x", _("no answer")
    return "n", _("not scored")
