"""The table of an experiment: examples by candidates, and one selected cell."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.evaluation.statistics import Agreement
from runs.models import (
    AgentStep,
    Example,
    Experiment,
    ExperimentCandidate,
    ExperimentRun,
    Run,
    Score,
)
from runs.services.datasets.from_run import format_run_answer
from runs.services.evaluation.judge_requests import list_judges_with_requests
from runs.services.evaluation.run_scores import RunScoreEntry, load_annotations
from runs.services.experiments.figures import compute_points, is_preference_only
from runs.services.tool_modes.changed_tools import find_changed_tools
from runs.ui.evaluation.earlier_messages import (
    EarlierMessages,
    build_earlier_messages,
)
from runs.ui.evaluation.evaluator_labels import (
    get_evaluator_kind_label,
    get_score_label,
)
from runs.ui.evaluation.failures import count_failures, describe_failure
from runs.ui.evaluation.verdict import LETTERS
from runs.ui.evaluation.word_diff import mark_differences
from runs.views.experiments.example_results import (
    EQUAL,
    ExampleResult,
    find_other_tools,
    load_example_results,
)
from runs.views.run.rows import ANSWERED_BY_TAGS

WINDOW = 50
FILTERS = {
    "": gettext_lazy("All"),
    "worse": gettext_lazy("Worse"),
    "better": gettext_lazy("Better"),
    "below": gettext_lazy("Not passed"),
    "failed": gettext_lazy("Failed"),
    "unscored": gettext_lazy("Not scored"),
    "tools": gettext_lazy("Tools differ"),
    "running": gettext_lazy("Running"),
    "waiting": gettext_lazy("Waiting"),
}
SORTS = {
    "number": gettext_lazy("Number"),
    "worse": gettext_lazy("Largest drop"),
    "better": gettext_lazy("Largest rise"),
    "score": gettext_lazy("Lowest score"),
    "cost": gettext_lazy("Highest cost"),
    "time": gettext_lazy("Longest time"),
}
COMPARING_SORTS = ("worse", "better")
MAX_SHOWN_STEPS = 20
STEP_COLUMNS = (
    *("index", "tool", "tool_input", "observation", "status", "elapsed", "run_id"),
    "answered_by",
)


class CellColumns(NamedTuple):
    """A run of the experiment as the table reads it."""

    is_preference: bool
    pk: int
    example: int
    candidate: int
    state: str
    run_status: str
    error_code: str | None
    passed: bool | None
    score: float | None
    cost: Decimal
    seconds: float | None

    @property
    def points(self) -> float | None:
        return compute_points(self.passed, self.score, is_preference=self.is_preference)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "refused")


class ExperimentCell(NamedTuple):
    """The runs of one example by one candidate."""

    pk: int
    mark: str
    """p passed, f failed, x no answer, n not scored, r running, q waiting."""
    word: str
    """The mark for screen readers, and why there is no score."""
    score: float | None
    cost: Decimal
    seconds: float | None
    delta: str = ""
    """w worse or b better than the baseline."""
    repeats: str = ""
    """How many of several repetitions passed."""


class ExperimentRow(NamedTuple):
    example: Example
    cells: list[ExperimentCell]


class ExperimentFilter(NamedTuple):
    """A filter and how many examples it shows."""

    key: str
    label: str
    examples: int


class ExperimentTable(NamedTuple):
    """Some of the examples that match."""

    rows: list[ExperimentRow]
    filters: list[ExperimentFilter]
    total: int
    first: int
    last: int
    previous_from: int | None
    next_from: int | None
    has_tags: bool
    failures: dict[int, list[tuple[str, int]]]
    """By candidate: why runs gave no answer, and how many."""


CellsByExample = dict[int, dict[int, list[CellColumns]]]


def load_cells(experiment: Experiment, examples: Collection[int]) -> CellsByExample:
    rows = experiment.cells.filter(example__in=examples).order_by("place")
    columns = rows.values_list(
        *("pk", "example", "candidate", "state", "run_status", "run__error_code"),
        *("passed", "score", "cost", "seconds"),
    )
    is_preference = is_preference_only(experiment)
    found: CellsByExample = defaultdict(lambda: defaultdict(list))
    for row in columns:
        cell = CellColumns(is_preference, *row)
        found[cell.example][cell.candidate].append(cell)
    return found


def build_experiment_table(
    experiment: Experiment,
    candidates: Sequence[ExperimentCandidate],
    *,
    key: str,
    sort: str,
    start: int,
) -> ExperimentTable:
    """Return the examples from `start` that match a filter, in the order of `sort`."""
    order = [one.pk for one in candidates]
    results = load_example_results(experiment, order)
    matching = {name: filter_results(results, name) for name in FILTERS}
    others = find_other_tools(experiment, results, order)
    matching["tools"] = [one for one in results if one.pk in others]
    found = sort_results(matching[key], sort)
    shown = [one.pk for one in found[start : start + WINDOW]]
    examples, cells = Example.objects.in_bulk(shown), load_cells(experiment, shown)
    rows = [ExperimentRow(examples[pk], build_cells(cells[pk], order)) for pk in shown]
    end = start + len(rows)
    return ExperimentTable(
        rows=rows,
        filters=[
            ExperimentFilter(name, str(label), len(matching[name]))
            for name, label in FILTERS.items()
            if matching[name] or name == key or not name
        ],
        total=len(found),
        first=start + 1,
        last=end,
        previous_from=max(start - WINDOW, 0) if start else None,
        next_from=end if end < len(found) else None,
        has_tags=any(row.example.tags for row in rows),
        failures=count_failures(experiment),
    )


def average_points(cells: Iterable[CellColumns]) -> float | None:
    """Return the mean of the repetitions that have a score."""
    points = [cell.points for cell in cells if cell.is_over and cell.points is not None]
    return fmean(points) if points else None


def filter_results(results: list[ExampleResult], key: str) -> list[ExampleResult]:
    match key:
        case "worse":
            return [one for one in results if one.smallest < -EQUAL]
        case "better":
            return [one for one in results if one.largest > EQUAL]
        case "below":
            return [one for one in results if one.not_passed]
        case "failed":
            return [one for one in results if one.without_answer]
        case "unscored":
            return [one for one in results if one.unscored]
        case "running":
            return [one for one in results if one.running]
        case "waiting":
            return [one for one in results if one.waiting]
    return results


def has_no_answer(cell: CellColumns) -> bool:
    return cell.is_over and cell.run_status in ("failed", "canceled", "")


def sort_results(found: list[ExampleResult], sort: str) -> list[ExampleResult]:
    """Return examples, which are ordered by number, in another order."""
    match sort:
        case "worse":
            return sorted(found, key=lambda one: one.smallest)
        case "better":
            return sorted(found, key=lambda one: -one.largest)
        case "score":
            return sorted(found, key=lambda one: one.lowest)
        case "cost":
            return sorted(found, key=lambda one: -one.cost)
        case "time":
            return sorted(found, key=lambda one: -one.seconds)
    return found


class SelectedPlace(NamedTuple):
    """The cell that is selected in the table, and those above and below it."""

    delta: str
    previous: int | None
    next: int | None


def find_selected_place(
    table: ExperimentTable, selected: ExperimentRun
) -> SelectedPlace | None:
    """Return None if the window of the table does not have the example."""
    column = selected.candidate.position
    for place, row in enumerate(table.rows):
        if row.example.pk == selected.example_id:
            below = table.rows[place + 1 : place + 2]
            return SelectedPlace(
                row.cells[column].delta,
                table.rows[place - 1].cells[column].pk if place else None,
                below[0].cells[column].pk if below else None,
            )
    return None


def find_worse_cell(table: ExperimentTable) -> int | None:
    """Return the first cell that is worse than the baseline; None without one."""
    cells = (cell for row in table.rows for cell in row.cells)
    return next((cell.pk for cell in cells if cell.delta == "w"), None)


def build_cells(
    row: dict[int, list[CellColumns]], order: Sequence[int]
) -> list[ExperimentCell]:
    baseline = average_points(row.get(order[0], []))
    return [build_experiment_cell(row.get(pk, []), baseline) for pk in order]


def build_experiment_cell(
    cells: Sequence[CellColumns], baseline: float | None
) -> ExperimentCell:
    over = [cell for cell in cells if cell.is_over]
    points = average_points(cells)
    mark, word = describe_cell(cells, points)
    seconds = [cell.seconds for cell in over if cell.seconds is not None]
    scores = [cell.score for cell in over if cell.score is not None]
    passed = sum(cell.passed is True for cell in over)
    delta = ""
    if points is not None and baseline is not None and abs(points - baseline) > EQUAL:
        delta = "b" if points > baseline else "w"
    return ExperimentCell(
        pk=cells[0].pk if cells else 0,
        mark=mark,
        word=word,
        score=fmean(scores) if scores else None,
        cost=sum((cell.cost for cell in over), Decimal(0)),
        seconds=fmean(seconds) if seconds else None,
        delta=delta,
        repeats=f"{passed}/{len(cells)}" if len(cells) > 1 and over else "",
    )


def describe_cell(
    cells: Sequence[CellColumns], points: float | None
) -> tuple[str, str]:
    if points is not None:
        decided = [c.passed for c in cells if c.passed is not None]
        if not decided:
            return "s", _("scored")
        return ("p", _("passed")) if all(decided) else ("f", _("not passed"))
    failed = next((cell for cell in cells if has_no_answer(cell)), None)
    if failed is not None:
        return "x", describe_failure(failed.state, failed.run_status, failed.error_code)
    if any(cell.is_over for cell in cells):
        return "n", _("not scored")
    if any(cell.state == "started" for cell in cells):
        return "r", _("running")
    return "q", _("waiting")


class ScoreRow(NamedTuple):
    """What an evaluator says of the selected run, and of the baseline's."""

    name: str
    kind_label: str
    label: str
    score: Score
    baseline: float | None
    agreement: Agreement | None
    """With people, on all their runs of the experiment."""


class SelectedCell(NamedTuple):
    """The cell on the right."""

    cell: ExperimentRun
    letter: str
    earlier: EarlierMessages | None
    """What the model saw of a conversation before, if the user may see the run."""
    answer: str
    difference: SafeString
    """The answer with what differs from the expected one marked; empty without one."""
    scores: list[ScoreRow]
    people: list[RunScoreEntry]
    """Marks of people, through annotation queues."""
    baseline_run: int | None
    is_unscored: bool
    """Whether an evaluator could not score the run, and may be asked again."""
    passed_scores: int
    decided_scores: int
    """Those that pass or fail."""
    repetitions: list[ExperimentRun]
    is_run_visible: bool
    judges: set[int]
    """Revisions of judges whose requests the user may read."""
    changed_tools: list[str]
    """Whose replayed results are of an earlier definition."""
    steps: list[AgentStep]
    """The first ones."""
    step_count: int
    answers: list[tuple[str, int]]
    """How calls were answered that were not made, and how many."""


def load_selected_cell(
    experiment: Experiment,
    pk: int | None,
    user: User,
    *,
    agreements: Mapping[int, Agreement],
) -> SelectedCell | None:
    rows = experiment.cells.select_related("example", "candidate", "run__spec")
    cell = rows.filter(pk=pk or 0).first()
    if cell is None:
        return None
    siblings = rows.filter(example=cell.example, candidate=cell.candidate)
    baseline = rows.filter(
        example=cell.example, candidate__position=0, repetition=cell.repetition
    ).first()
    is_baseline = baseline is None or baseline.pk == cell.pk
    steps = AgentStep.objects.filter(run=cell.run_id or 0).order_by("index")
    answer = format_run_answer(cell.run) if cell.run and cell.run.is_over else ""
    expected = cell.example.expected_answer
    scores = list_score_rows(cell, None if is_baseline else baseline, agreements)
    is_run_visible = (
        cell.run_id is not None
        and Run.objects.visible_to(user).filter(pk=cell.run_id).exists()
    )
    return SelectedCell(
        cell=cell,
        letter=LETTERS[cell.candidate.position],
        earlier=build_earlier_messages(cell.run)
        if cell.run and is_run_visible
        else None,
        answer=answer,
        difference=mark_differences(expected, answer)
        if expected and answer
        else SafeString(""),
        scores=scores,
        people=load_annotations(cell.run, viewer=user)
        if cell.run and is_run_visible
        else [],
        is_unscored=cell.run is not None
        and cell.run.answer is not None
        and any(one.score.problem for one in scores),
        passed_scores=sum(one.score.passed is True for one in scores),
        decided_scores=sum(one.score.passed is not None for one in scores),
        baseline_run=None if is_baseline or baseline is None else baseline.run_id,
        repetitions=list(siblings.order_by("repetition")),
        is_run_visible=is_run_visible,
        judges=list_judges_with_requests(cell.run, by=user)
        if cell.run and is_run_visible
        else set(),
        changed_tools=find_changed_tools(cell.run)
        if cell.run and cell.run.is_over
        else [],
        steps=list(steps.only(*STEP_COLUMNS)[:MAX_SHOWN_STEPS]),
        step_count=steps.count(),
        answers=count_answers(steps),
    )


def count_answers(steps: QuerySet[AgentStep]) -> list[tuple[str, int]]:
    """Return how calls were answered that were not made, and how many."""
    rows = steps.exclude(answered_by="").order_by("answered_by")
    counts = rows.values_list("answered_by").annotate(Count("pk"))
    return [(str(ANSWERED_BY_TAGS[one]), count) for one, count in counts]


def list_score_rows(
    cell: ExperimentRun,
    baseline: ExperimentRun | None,
    agreements: Mapping[int, Agreement],
) -> list[ScoreRow]:
    """Return the scores, each with that of the baseline's run."""
    others: dict[Any, float | None] = (
        dict(baseline.scores.values_list("revision", "value")) if baseline else {}
    )
    scores = cell.scores.select_related("revision__evaluator")
    return [
        ScoreRow(
            score.revision.evaluator.name,
            get_evaluator_kind_label(score.revision.kind).title,
            get_score_label(score.revision, score.label),
            score,
            others.get(score.revision_id),
            agreements.get(score.revision_id),
        )
        for score in scores.order_by("revision__evaluator__name")
    ]
