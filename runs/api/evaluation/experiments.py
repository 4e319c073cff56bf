"""Experiments in the API: start, read, stop, resume; their runs and scores."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.definitions.agents import Slug
from runs.api.dispatch import json_response
from runs.api.evaluation.lookups import find_dataset, find_evaluators
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.runs import get_agent_for_user
from runs.api.shapes import Shape
from runs.engine.parsing.clean import clean_json, clean_text
from runs.evaluation.gate import RuleResult
from runs.models import Experiment, ExperimentRun, RunScore, Score
from runs.serializers import Json, format_timestamp
from runs.services.errors import FieldsRefused, NotAllowed, RunsError
from runs.services.experiments.changes import CandidateChanges, use_library_prompt
from runs.services.experiments.control import resume_experiment, stop_experiment
from runs.services.experiments.create import (
    MAX_CANDIDATES,
    MAX_CONCURRENCY,
    MAX_REPETITIONS,
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.figures import ComparisonFigures, TagFigures
from runs.services.experiments.repeat import (
    list_newest_revisions,
    repeat_experiment,
)
from runs.services.experiments.report import CandidateReport, build_experiment_report
from runs.services.gates.state import judge_experiment
from runs.services.spec.inline_prompt import list_library_prompts

Mode = Literal["hold_back", "replay_by_tool", "replay_reads", "replay_strict", "live"]
Budget = Annotated[Decimal, Field(gt=0, max_digits=14, decimal_places=6, strict=False)]


class CandidateBody(StrictBody):
    """A version of an agent or its draft, perhaps changed for this experiment."""

    agent: str
    """Slug."""
    version: Annotated[int, Field(ge=1)] | None = None
    """Null for the draft."""
    model: Annotated[str, Field(max_length=200)] = ""
    """Of the same provider; empty for its own."""
    instructions: str = ""
    """In place of its prompt; empty for its own."""
    prompt: Slug | None = None
    """A prompt of the library in place of its own, as it is now."""
    parameters: dict[str, Any] = {}
    """Such as `temperature`; the others stay, and null removes one."""


class ExperimentBody(StrictBody):
    """A new experiment; the first candidate is the baseline."""

    dataset: str
    """Slug; its newest version is run."""
    candidates: Annotated[
        list[CandidateBody], Field(min_length=1, max_length=MAX_CANDIDATES)
    ]
    evaluators: Annotated[list[str], Field(min_length=1, max_length=50)]
    """Slugs; their newest revisions are used."""
    name: Annotated[str, Field(max_length=120)] = ""
    tool_mode: Mode = "hold_back"
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)] = 1
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = 10
    budget: Budget | None = None
    """In the currency of your prices; null for none."""


class RepeatExperimentBody(StrictBody):
    """What is run again."""

    candidate: Annotated[str, Field(max_length=20)] = ""
    """`draft` or the number of a version of the first candidate's agent, which is
    compared with the newest published version. Left out, all candidates are run."""


class ResumeExperimentBody(StrictBody):
    """How an experiment continues."""

    budget: Budget | None = None
    """The new budget; null for none. Left out, it stays as it is."""


class ExperimentShape(Shape):
    """A dataset version, run by candidates and scored by evaluators."""

    id: int
    name: str
    status: Literal["running", "stopped", "done"]
    problem: str
    """Why it was stopped, unless a person did it."""
    owner: str
    dataset: str
    """Slug."""
    dataset_version: int
    evaluators: list[str]
    """Slugs."""
    tool_mode: Mode
    repetitions: int
    concurrency: int
    budget: float | None
    total: int
    """Runs when it is done."""
    candidates: list[CandidateReport]
    comparisons: list[ComparisonFigures]
    """Each candidate against the first one."""
    tags: list[TagFigures]
    """Of most examples; their numbers are in the order of the candidates."""
    calls_made: int
    """Tool calls that were executed, those of called agents included."""
    calls_held_back: int
    calls_not_recorded: int
    """Replayed calls that were not made, because the recording has no answer."""
    gate: list[RuleResult] | None
    """Each rule of the gate of the last candidate's agent, if that is a draft. Null
    without a gate, if it requires other examples, evaluators or settings, before the
    end, and in lists."""
    created_at: str | None
    ended_at: str | None


class EvaluatorScoreShape(Shape):
    """What an evaluator says of a run."""

    evaluator: str
    """Slug."""
    revision: int
    value: float | None
    label: str
    passed: bool | None
    explanation: str
    problem: str
    """The reason for a missing score; empty if there is a score."""
    cost: float


class ScoreShape(EvaluatorScoreShape):
    """What an evaluator or a person says of a run."""

    source: str


class CellShape(Shape):
    """One example, run by one candidate."""

    id: int
    example: int
    """Its number."""
    candidate: int
    """The number in `candidates` of the experiment, 0 for the baseline."""
    repetition: int
    state: Literal["waiting", "started", "done", "refused"]
    problem: str
    run: int | None
    run_status: str
    passed: bool | None
    score: float | None
    cost: float
    tokens: int
    seconds: float | None
    scores: list[ScoreShape]


def listed_experiment_json(row: Experiment) -> Json:
    """Return an experiment of a list: without its gate, which takes more queries."""
    return experiment_json(row, has_gate=False)


def experiment_json(row: Experiment, *, has_gate: bool = True) -> Json:
    report = build_experiment_report(row)
    gate = judge_experiment(row) if has_gate else None
    return {
        "id": row.pk,
        "name": row.name,
        "status": row.status,
        "problem": row.problem,
        "owner": row.owner.get_username(),
        "dataset": row.dataset.slug,
        "dataset_version": row.dataset_version,
        "evaluators": sorted(row.evaluators.values_list("evaluator__slug", flat=True)),
        "tool_mode": row.tool_mode,
        "repetitions": row.repetitions,
        "concurrency": row.concurrency,
        "budget": None if row.budget is None else float(row.budget),
        "total": row.total,
        "candidates": [one.model_dump(mode="json") for one in report.candidates],
        "comparisons": [one.model_dump(mode="json") for one in report.comparisons],
        "tags": [one.model_dump(mode="json") for one in report.tags],
        "calls_made": report.calls_made,
        "calls_held_back": report.calls_held_back,
        "calls_not_recorded": report.calls_not_recorded,
        "gate": [one.model_dump(mode="json") for one in gate.rules] if gate else None,
        "created_at": format_timestamp(row.created_at),
        "ended_at": format_timestamp(row.ended_at),
    }


def evaluator_score_json(row: Score | RunScore) -> Json:
    return {
        "evaluator": row.revision.evaluator.slug,
        "revision": row.revision.number,
        "value": row.value,
        "label": row.label,
        "passed": row.passed,
        "explanation": row.explanation,
        "problem": row.problem,
        "cost": float(row.cost),
    }


def cell_json(row: ExperimentRun, scores: list[Score]) -> Json:
    return {
        "id": row.pk,
        "example": row.example.number,
        "candidate": row.candidate.position,
        "repetition": row.repetition,
        "state": row.state,
        "problem": row.problem,
        "run": row.run_id,
        "run_status": row.run_status,
        "passed": row.passed,
        "score": row.score,
        "cost": float(row.cost),
        "tokens": row.tokens,
        "seconds": row.seconds,
        "scores": [
            {**evaluator_score_json(one), "source": one.source} for one in scores
        ],
    }


def get_experiment_for_user(user: User, pk: str) -> Experiment:
    rows = Experiment.objects.visible_to(user).select_related("owner", "dataset")
    found = rows.filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Experiment", pk)
    return found


def list_experiments(
    request: HttpRequest, user: User, query: PageQuery
) -> HttpResponse:
    """The user's experiments, the newest first."""
    rows = Experiment.objects.visible_to(user).select_related("owner", "dataset")
    return json_response(paginate_by_id(rows, query, listed_experiment_json))


def start_experiment(
    request: HttpRequest, user: User, body: ExperimentBody
) -> HttpResponse:
    """Start an experiment with the newest examples and evaluators."""
    dataset = find_dataset(user, body.dataset)
    choices = [find_candidate(user, one, at) for at, one in enumerate(body.candidates)]
    evaluators = find_evaluators(user, body.evaluators)
    plan = ExperimentPlan(
        tool_mode=body.tool_mode,
        repetitions=body.repetitions,
        concurrency=body.concurrency,
        budget=body.budget,
    )
    with report_refusals("dataset", forbidden="candidates"):
        row = create_experiment(
            dataset,
            choices,
            list_newest_revisions(evaluators),
            by=user,
            plan=plan,
            name=body.name,
        )
    location = reverse("api-experiment", args=[row.pk])
    return json_response(experiment_json(row), 201, Location=location)


def repeat_experiment_for_user(
    request: HttpRequest, user: User, pk: str, body: RepeatExperimentBody
) -> HttpResponse:
    """Start the experiment again, with what its dataset and its evaluators are now.

    A draft is run as it is now. The settings stay.
    """
    former = get_experiment_for_user(user, pk)
    find_dataset(user, former.dataset.slug)
    revisions = former.evaluators.select_related("evaluator")
    find_evaluators(user, [one.evaluator.slug for one in revisions])
    with report_refusals("candidate" if body.candidate else "id"):
        row = repeat_experiment(former, by=user, candidate=body.candidate)
    location = reverse("api-experiment", args=[row.pk])
    return json_response(experiment_json(row), 201, Location=location)


@contextmanager
def report_refusals(field: str, *, forbidden: str = "") -> Iterator[None]:
    """Raise an `ApiProblem` if an experiment is refused.

    It names `field`, or `forbidden` for what the user may not do, unless the refusal
    names fields itself.
    """
    try:
        yield
    except FieldsRefused as refused:
        raise ApiProblem(422, refused.errors) from None
    except NotAllowed as refused:
        raise field_problem(forbidden or field, str(refused), 403) from None
    except RunsError as refused:
        raise field_problem(field, str(refused)) from None


def find_candidate(user: User, body: CandidateBody, place: int) -> CandidateChoice:
    """Return the candidate; raise an `ApiProblem` if it does not exist."""
    agent = get_agent_for_user(user, body.agent)
    changes = build_changes(user, body, place)
    if body.version is None:
        return CandidateChoice(agent, None, changes)
    version = agent.versions.filter(number=body.version).first()
    if version is None:
        raise field_problem(
            f"candidates.{place}.version",
            f"The agent {body.agent!r} has no version {body.version}.",
        )
    return CandidateChoice(agent, version, changes)


def build_changes(user: User, body: CandidateBody, place: int) -> CandidateChanges:
    """Return what the candidate changes; raise an `ApiProblem` for its prompt."""
    changes = CandidateChanges(
        model=body.model,
        instructions=clean_text(body.instructions).strip(),
        parameters=clean_json(body.parameters),
    )
    if body.prompt is None:
        return changes
    field = f"candidates.{place}.prompt"
    if body.instructions:
        raise field_problem(field, "Send `prompt` or `instructions`, not both.")
    found = list_library_prompts(user).filter(slug=body.prompt).first()
    if found is None:
        raise field_problem(field, f"Prompt {body.prompt!r} not found.")
    return use_library_prompt(changes, found)


def read_experiment(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One experiment with its figures, which workers update while it runs."""
    return json_response(experiment_json(get_experiment_for_user(user, pk)))


def list_experiment_runs(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The runs with their scores, in the order in which they are started."""
    rows = get_experiment_for_user(user, pk).cells.select_related(
        "example", "candidate"
    )
    scores: dict[int, list[Score]] = defaultdict(list)
    page = paginate_by_id(rows, query, lambda row: row, oldest_first=True)
    found = Score.objects.filter(cell__in=[row.pk for row in page["data"]])
    for score in found.select_related("revision__evaluator"):
        scores[score.cell_id].append(score)
    data = [cell_json(row, scores[row.pk]) for row in page["data"]]
    return json_response({**page, "data": data})


def stop_experiment_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Start no more runs; those that have started are still scored."""
    row = get_experiment_for_user(user, pk)
    if not stop_experiment(row, by=user):
        raise field_problem("status", "The experiment is not running.", 409)
    return json_response(experiment_json(get_experiment_for_user(user, pk)))


def resume_experiment_for_user(
    request: HttpRequest, user: User, pk: str, body: ResumeExperimentBody
) -> HttpResponse:
    """Start the runs that are missing; a budget that is left out stays as it is."""
    row = get_experiment_for_user(user, pk)
    budget = body.budget if "budget" in body.model_fields_set else row.budget
    if not resume_experiment(row, by=user, budget=budget):
        raise field_problem("status", "The experiment is not stopped.", 409)
    return json_response(experiment_json(get_experiment_for_user(user, pk)))


ROUTES = [
    Route(
        "GET",
        "experiments",
        list_experiments,
        "List experiments",
        Page[ExperimentShape],
        query=PageQuery,
    ),
    Route(
        *("POST", "experiments", start_experiment, "Start an experiment"),
        ExperimentShape,
        body=ExperimentBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        *("GET", "experiments/{id}", read_experiment, "Read an experiment"),
        ExperimentShape,
    ),
    Route(
        "GET",
        "experiments/{id}/runs",
        list_experiment_runs,
        "List runs and scores of an experiment",
        Page[CellShape],
        query=PageQuery,
    ),
    Route(
        *("POST", "experiments/{id}/repeat"),
        *(repeat_experiment_for_user, "Run an experiment again"),
        ExperimentShape,
        body=RepeatExperimentBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "POST",
        "experiments/{id}/stop",
        stop_experiment_for_user,
        "Stop an experiment",
        ExperimentShape,
        errors=(409,),
    ),
    Route(
        "POST",
        "experiments/{id}/resume",
        resume_experiment_for_user,
        "Resume an experiment",
        ExperimentShape,
        body=ResumeExperimentBody,
        errors=(409,),
    ),
]
