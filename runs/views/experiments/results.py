"""The runs of an experiment and their scores, written as CSV or JSONL."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Prefetch

from runs.models import Experiment, ExperimentRun, Run, Score
from runs.services.datasets.content import INPUT_FIELD
from runs.services.datasets.export import write_csv_line
from runs.services.datasets.from_run import format_run_answer

BATCH = 500
COLUMNS = (
    *("expected_answer", "tags", "candidate", "repetition", "status", "problem"),
    *("answer", "passed", "score"),
)
SCORE_FIELD = "score:"
"""Before the name of an evaluator, as that of an input is written."""
COST_COLUMNS = ("cost", "tokens", "seconds", "run")
RUN_FIELDS = ("status", "output", "error_message")


def iter_csv_results(experiment: Experiment) -> Iterator[str]:
    """Yield the lines of a CSV file, with a column for each input and evaluator."""
    keys = list_cell_keys(experiment)
    names, evaluators = list_input_names(experiment), name_evaluators(experiment)
    yield "\ufeff"  # spreadsheets read UTF-8 only with this mark
    yield write_csv_line(
        [
            "example",
            *(INPUT_FIELD + name for name in names),
            *COLUMNS,
            *(SCORE_FIELD + name for name in evaluators.values()),
            *COST_COLUMNS,
        ]
    )
    for cell in iter_cells(keys):
        row = build_result(cell)
        scores = {one.revision_id: summarize_score(one) for one in cell.scores.all()}
        cells = [
            row["example"],
            *map(row["inputs"].get, names),
            *map(row.get, COLUMNS),
            *map(scores.get, evaluators),
            *map(row.get, COST_COLUMNS),
        ]
        yield write_csv_line([format_value(one) for one in cells])


def iter_jsonl_results(experiment: Experiment) -> Iterator[str]:
    """Yield the lines of a file with one JSON object per run."""
    for cell in iter_cells(list_cell_keys(experiment)):
        yield json.dumps(build_result(cell), ensure_ascii=False) + "\n"


def list_input_names(experiment: Experiment) -> list[str]:
    """Return the inputs of the dataset, then those that only its version has."""
    examples = experiment.dataset.examples.in_version(experiment.dataset_version)
    rows = examples.values_list("inputs", flat=True)
    used = {name for inputs in rows for name in inputs}
    now = [name for name in experiment.dataset.input_names if name in used]
    return [*now, *sorted(used.difference(now))]


def name_evaluators(experiment: Experiment) -> dict[int, str]:
    """Return the names by key of the revision; equal ones end with their slugs."""
    rows = experiment.evaluators.order_by("evaluator__name", "pk")
    found = list(rows.values_list("pk", "evaluator__name", "evaluator__slug"))
    counts = Counter(name for _, name, _ in found)
    return {
        pk: f"{name} ({slug})" if counts[name] > 1 else name for pk, name, slug in found
    }


def list_cell_keys(experiment: Experiment) -> list[int]:
    """Return the keys by example, candidate and repetition."""
    order = ("example__number", "candidate__position", "repetition")
    return list(experiment.cells.order_by(*order).values_list("pk", flat=True))


def iter_cells(keys: Sequence[int]) -> Iterator[ExperimentRun]:
    """Yield the rows a batch at a time: no statement reads all of them."""
    scores = Score.objects.select_related("revision__evaluator")
    runs = Run.objects.only(*RUN_FIELDS)
    rows = ExperimentRun.objects.select_related("example", "candidate")
    rows = rows.prefetch_related(
        Prefetch("scores", queryset=scores), Prefetch("run", queryset=runs)
    )
    for start in range(0, len(keys), BATCH):
        found = rows.in_bulk(keys[start : start + BATCH])
        yield from (found[key] for key in keys[start : start + BATCH] if key in found)


def build_result(cell: ExperimentRun) -> dict[str, Any]:
    has_answer = cell.run is not None and cell.run.is_over
    return {
        "example": cell.example.number,
        "inputs": cell.example.inputs,
        "expected_answer": cell.example.expected_answer,
        "tags": cell.example.tags,
        "candidate": cell.candidate.label,
        "repetition": cell.repetition + 1,
        "status": cell.run_status or cell.state,
        "problem": cell.problem or (cell.run.error_message if cell.run else ""),
        "answer": format_run_answer(cell.run) if cell.run and has_answer else "",
        "passed": cell.passed,
        "score": cell.score,
        "scores": [build_score_result(one) for one in cell.scores.all()],
        "cost": str(cell.cost),
        "tokens": cell.tokens,
        "seconds": cell.seconds,
        "run": cell.run_id,
    }


def build_score_result(score: Score) -> dict[str, Any]:
    return {
        "evaluator": score.revision.evaluator.slug,
        "revision": score.revision.number,
        "value": score.value,
        "label": score.label,
        "passed": score.passed,
        "explanation": score.explanation,
        "problem": score.problem,
    }


def summarize_score(score: Score) -> float | str:
    """Return the value, else the label, else why there is neither."""
    if score.value is not None:
        return score.value
    return score.label or score.problem


def format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
