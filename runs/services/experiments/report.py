"""What an experiment found, for programs: as JSON and as a JUnit file."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from runs.engine.types import FrozenModel
from runs.models import Experiment, ExperimentCandidate, ExperimentRun, Score
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.figures import (
    CandidateFigures,
    ComparisonFigures,
    TagFigures,
    load_stored_figures,
)

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_NAME_CHARS = 120


class CandidateReport(FrozenModel):
    """A candidate and its figures; `figures` is null before the first run has ended."""

    candidate: int
    label: str
    agent: str
    version: int | None
    """Null for the draft."""
    changes: CandidateChanges
    pass_rate: float | None
    figures: CandidateFigures | None


class ExperimentReport(FrozenModel):
    """An experiment with the figures that its page shows."""

    id: int
    name: str
    status: str
    problem: str
    dataset: str
    dataset_version: int
    tool_mode: str
    repetitions: int
    total: int
    candidates: tuple[CandidateReport, ...]
    comparisons: tuple[ComparisonFigures, ...]
    tags: tuple[TagFigures, ...]
    """Of most examples; their numbers are in the order of the candidates."""
    calls_made: int
    """Tool calls that were executed, those of called agents included."""
    calls_held_back: int
    calls_not_recorded: int
    """Replayed calls that were not made, because the recording has no answer."""


def build_experiment_report(experiment: Experiment) -> ExperimentReport:
    """Return the report with the figures stored last."""
    figures = load_stored_figures(experiment)
    found = {one.candidate: one for one in figures.candidates}
    rows = experiment.candidates.select_related("agent", "version")
    return ExperimentReport(
        id=experiment.pk,
        name=experiment.name,
        status=experiment.status,
        problem=experiment.problem,
        dataset=experiment.dataset.slug,
        dataset_version=experiment.dataset_version,
        tool_mode=experiment.tool_mode,
        repetitions=experiment.repetitions,
        total=experiment.total,
        candidates=tuple(
            build_candidate_report(one, found.get(one.pk)) for one in rows
        ),
        comparisons=figures.comparisons,
        tags=figures.tags,
        calls_made=figures.calls_made,
        calls_held_back=figures.calls_held_back,
        calls_not_recorded=figures.calls_not_recorded,
    )


def build_candidate_report(
    candidate: ExperimentCandidate, figures: CandidateFigures | None
) -> CandidateReport:
    version = candidate.version
    return CandidateReport(
        candidate=candidate.pk,
        label=candidate.label,
        agent=candidate.agent.slug,
        version=version.number if version else None,
        changes=CandidateChanges.model_validate(candidate.changes),
        pass_rate=figures.rate if figures else None,
        figures=figures,
    )


def build_junit(experiment: Experiment) -> str:
    """Return a JUnit file: a suite for each candidate, a case for each run."""
    root = ElementTree.Element("testsuites", name=to_xml_text(experiment.name))
    for candidate in experiment.candidates.all():
        root.append(build_suite(experiment, candidate))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def build_suite(
    experiment: Experiment, candidate: ExperimentCandidate
) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=to_xml_text(candidate.label))
    cells = experiment.cells.filter(candidate=candidate).select_related(
        "example", "run"
    )
    scores: dict[int, list[Score]] = {}
    rows = Score.objects.filter(cell__candidate=candidate)
    for score in rows.select_related("revision__evaluator"):
        scores.setdefault(score.cell_id, []).append(score)
    counts = dict.fromkeys(("failure", "error", "skipped"), 0)
    ordered = cells.order_by("example__number", "repetition")
    for cell in ordered.iterator(chunk_size=500):
        case = build_case(experiment, cell, scores.get(cell.pk, []))
        for part in case:
            counts[part.tag] += 1
        suite.append(case)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))
    return suite


def build_case(
    experiment: Experiment, cell: ExperimentRun, scores: list[Score]
) -> ElementTree.Element:
    """Return a run: failed evaluators are failures, other missing passes are errors."""
    again = f" ({cell.repetition + 1})" if experiment.repetitions > 1 else ""
    title = next(iter(cell.example.inputs.values()), "")[:MAX_NAME_CHARS]
    case = ElementTree.Element(
        "testcase",
        name=to_xml_text(f"{cell.example.number}{again}: {title}"),
        classname=to_xml_text(experiment.dataset.slug),
        time=f"{cell.seconds or 0:.3f}",
    )
    if cell.state in ("waiting", "started"):
        add_part(case, "skipped", "The run has not ended.")
    elif cell.problem or cell.run_status in ("failed", "canceled", ""):
        add_part(case, "error", cell.problem or describe_problems(scores))
    elif cell.passed is False:
        add_part(case, "failure", "\n".join(describe_failures(scores)))
    elif cell.passed is None and cell.score is None:
        add_part(case, "error", describe_problems(scores))
    return case


def add_part(case: ElementTree.Element, tag: str, text: str) -> None:
    first = text.partition("\n")[0]
    part = ElementTree.SubElement(case, tag, message=to_xml_text(first))
    part.text = to_xml_text(text)


def describe_failures(scores: list[Score]) -> Iterator[str]:
    """Yield a line for each evaluator that the run has not passed."""
    for score in scores:
        if score.passed is False:
            why = score.explanation or score.label or f"{score.value}"
            yield f"{score.revision.evaluator.name}: {why}"


def describe_problems(scores: list[Score]) -> str:
    """Return why the run was not scored, each reason once."""
    return "\n".join(dict.fromkeys(score.problem for score in scores if score.problem))


def to_xml_text(text: str) -> str:
    """Return the text without characters that XML cannot contain."""
    return NOT_XML.sub("�", text)
