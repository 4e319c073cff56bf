"""How far people agree with each other, and evaluators with people."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Avg, QuerySet

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
from runs.services.evaluation.run_scores import filter_shown_annotations

MAX_COMPARED_SCORES = 2_000
"""Of an evaluator in experiments, as many in rules; of a person in a queue."""
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


def select_done(queue: AnnotationQueue) -> QuerySet[Annotation]:
    return Annotation.objects.filter(item__queue=queue, state=Annotation.State.DONE)


def load_marks(rows: QuerySet[Annotation]) -> dict[int, dict[int, int]]:
    """Return the marks of a queue, by run and person."""
    marks: dict[int, dict[int, int]] = defaultdict(dict)
    for run, person, mark in rows.values_list("item__run", "by", "mark"):
        marks[run][person] = mark or 0
    return dict(marks)


def load_queue_agreement(queue: AnnotationQueue) -> QueueAgreement:
    """Return the agreement of each pair of people, and of each evaluator with them."""
    marks = load_marks(select_done(queue))
    return QueueAgreement(
        compare_people(marks),
        compare_evaluators(marks, passing_mark=queue.passing_mark),
    )


def find_own_agreement(queue: AnnotationQueue, person: User) -> PeopleAgreement | None:
    """Return how `person` agrees with whoever has scored the most of the same runs."""
    done = select_done(queue)
    mine = done.filter(by=person).order_by("-pk").values("item")
    marks = load_marks(done.filter(item__in=mine[:MAX_COMPARED_SCORES]))
    for one, other, agreement in compare_people(marks):
        if person in (one, other):
            partner = other if person == one else one
            return PeopleAgreement(person, partner, agreement)
    return None


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
        agreement = compare_verdicts(passed, good)
        if agreement is not None:
            found.append(EvaluatorAgreement(evaluators[key], agreement))
    return sorted(found, key=lambda one: (-one.agreement.runs, one.evaluator.name))


class ExperimentAgreement(NamedTuple):
    """How far what an experiment says agrees with people."""

    all: Agreement | None
    """Of passing all evaluators."""
    revisions: dict[int, Agreement]
    """Of each evaluator's revision."""


def load_experiment_agreement(
    experiment: Experiment, *, viewer: User
) -> ExperimentAgreement:
    """Compare with what people say of the experiment's runs, as `viewer` may know."""
    runs = Run.objects.filter(experiment_run__experiment=experiment)
    good = load_people_verdicts(runs, viewer=viewer)
    if not good:
        return ExperimentAgreement(None, {})
    cells = experiment.cells.filter(run__in=list(good), passed__isnull=False)
    scores = Score.objects.filter(
        cell__experiment=experiment, cell__run__in=list(good), passed__isnull=False
    )
    return ExperimentAgreement(
        compare_verdicts(dict(cells.values_list("run", "passed")), good),
        compare_revisions(scores.values_list("revision", "cell__run", "passed"), good),
    )


def load_evaluator_agreement(
    evaluator: Evaluator, *, viewer: User
) -> dict[int, Agreement]:
    """Compare each revision, by its number, with people on its latest scores.

    Only runs that `viewer` may see count.
    """
    scores = Score.objects.filter(revision__evaluator=evaluator, passed__isnull=False)
    live = RunScore.objects.filter(revision__evaluator=evaluator, passed__isnull=False)
    found = [
        *scores.order_by("-pk").values_list("revision__number", "cell__run", "passed")[
            :MAX_COMPARED_SCORES
        ],
        *live.order_by("-pk").values_list("revision__number", "scored__run", "passed")[
            :MAX_COMPARED_SCORES
        ],
    ]
    runs = Run.objects.visible_to(viewer).filter(pk__in={run for _, run, _ in found})
    good = load_people_verdicts(runs, viewer=viewer)
    return compare_revisions((one for one in found if one[1] in good), good)


def load_people_verdicts(runs: QuerySet[Run], *, viewer: User) -> dict[int, bool]:
    """Return by run whether most people find it good; a tie counts for nothing.

    A rating is one judgment, and so is the mean mark of an annotation queue. Marks of
    a queue that still asks the viewer about the run are left out.
    """
    judgments: dict[int, list[bool]] = defaultdict(list)
    rated = runs.filter(rating__isnull=False).order_by()
    for run, rating in rated.values_list("pk", "rating"):
        judgments[run].append(rating == Run.RATINGS["good"])
    shown = filter_shown_annotations(viewer)
    marks = shown.filter(item__run__in=runs.order_by().values("pk")).order_by()
    fields = ("item", "item__run", "item__queue__passing_mark")
    for row in marks.values(*fields).annotate(mean=Avg("mark")):
        is_good = row["mean"] >= row["item__queue__passing_mark"]
        judgments[row["item__run"]].append(is_good)
    means = {run: fmean(each) for run, each in judgments.items()}
    return {run: mean > 0.5 for run, mean in means.items() if mean != 0.5}


def compare_verdicts(
    passed: Mapping[int, bool | None], good: Mapping[int, bool]
) -> Agreement | None:
    """Return how often runs pass that people find good, and fail if not."""
    return compute_agreement(
        [bool(passes) for passes in passed.values()], [good[run] for run in passed]
    )


def compare_revisions(
    scores: Iterable[tuple[int, int, bool | None]], good: Mapping[int, bool]
) -> dict[int, Agreement]:
    """Return the agreement by revision, for scores of (revision, run, passed).

    Of several scores of a run by one revision, the first counts.
    """
    found: dict[int, dict[int, bool | None]] = defaultdict(dict)
    for revision, run, passed in scores:
        found[revision].setdefault(run, passed)
    compared = {key: compare_verdicts(each, good) for key, each in found.items()}
    return {key: one for key, one in compared.items() if one is not None}


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
