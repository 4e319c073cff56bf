"""How far people agree with each other, and evaluators with people."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from django.contrib.auth.models import User

from runs.evaluation.statistics import Agreement, compute_agreement
from runs.models import (
    Annotation,
    AnnotationQueue,
    Evaluator,
    Experiment,
    Run,
    RunScore,
    Score,
)

Marks = Mapping[int, Mapping[int, int]]
"""By run, then by person."""


class PeopleAgreement(NamedTuple):
    """Two people and the runs that both have scored."""

    one: User
    other: User
    agreement: Agreement

    @property
    def percent(self) -> int:
        return round(100 * self.agreement.same)


class EvaluatorAgreement(NamedTuple):
    """An evaluator and the people who scored the same runs."""

    evaluator: Evaluator
    agreement: Agreement

    @property
    def percent(self) -> int:
        return round(100 * self.agreement.same)


class QueueAgreement(NamedTuple):
    """Who agrees with whom on the runs of a queue."""

    people: list[PeopleAgreement]
    evaluators: list[EvaluatorAgreement]


def load_marks(queue: AnnotationQueue) -> dict[int, dict[int, int]]:
    """Return all marks of a queue, by run and person."""
    rows = Annotation.objects.filter(item__queue=queue, state=Annotation.State.DONE)
    marks: dict[int, dict[int, int]] = defaultdict(dict)
    for run, person, mark in rows.values_list("item__run", "by", "mark"):
        marks[run][person] = mark or 0
    return dict(marks)


def load_queue_agreement(queue: AnnotationQueue) -> QueueAgreement:
    """Return the agreement of each pair of people, and of each evaluator with them."""
    marks = load_marks(queue)
    return QueueAgreement(
        compare_people(marks),
        compare_evaluators(marks, passing_mark=queue.passing_mark),
    )


def compare_people(marks: Marks) -> list[PeopleAgreement]:
    """Return the pairs with shared runs, those with the most first."""
    keys = sorted({person for each in marks.values() for person in each})
    people = User.objects.in_bulk(keys)
    found = []
    for one, other in combinations(keys, 2):
        shared = [each for each in marks.values() if one in each and other in each]
        agreement = compute_agreement(
            [each[one] for each in shared], [each[other] for each in shared]
        )
        if agreement is not None:
            found.append(PeopleAgreement(people[one], people[other], agreement))
    return sorted(found, key=lambda pair: -pair.agreement.runs)


def compare_evaluators(marks: Marks, *, passing_mark: int) -> list[EvaluatorAgreement]:
    """Return how often evaluators pass what people find good, and fail what not."""
    verdicts = load_verdicts(marks)
    good = {run: fmean(each.values()) >= passing_mark for run, each in marks.items()}
    evaluators = Evaluator.objects.in_bulk(list(verdicts))
    found = []
    for key, passed in verdicts.items():
        agreement = compute_agreement(
            list(passed.values()), [good[run] for run in passed]
        )
        if agreement is not None:
            found.append(EvaluatorAgreement(evaluators[key], agreement))
    return sorted(found, key=lambda one: (-one.agreement.runs, one.evaluator.name))


def compare_with_ratings(experiment: Experiment) -> Agreement | None:
    """Return how often evaluators pass runs that people rate as good; null if none."""
    rows = experiment.cells.filter(run__rating__isnull=False, passed__isnull=False)
    found = list(rows.values_list("passed", "run__rating"))
    return compute_agreement(
        [bool(passed) for passed, _rating in found],
        [rating == Run.RATINGS["good"] for _passed, rating in found],
    )


def load_verdicts(runs: Iterable[int]) -> dict[int, dict[int, bool]]:
    """Return by evaluator which runs it passed; scores of rules come last."""
    rows = Score.objects.filter(
        cell__run__in=list(runs), source=Score.Source.EVALUATOR, passed__isnull=False
    ).order_by("pk")
    live = RunScore.objects.filter(
        scored__run__in=list(runs), passed__isnull=False
    ).order_by("pk")
    found: dict[int, dict[int, bool]] = defaultdict(dict)
    for evaluator, run, passed in (
        *rows.values_list("revision__evaluator", "cell__run", "passed"),
        *live.values_list("revision__evaluator", "scored__run", "passed"),
    ):
        found[evaluator][run] = bool(passed)
    return dict(found)
