"""The search for a failing version in the API; it is an experiment of its own."""

from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.evaluation.experiments import (
    Budget,
    ExperimentShape,
    Mode,
    experiment_json,
    get_experiment_for_user,
    report_refusals,
)
from runs.api.problems import field_problem, not_found
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.models import Bisection
from runs.serializers import Json
from runs.services.experiments.bisect import (
    BisectionPlan,
    ProbedVersion,
    load_bisection,
    start_bisection,
)
from runs.services.experiments.create import MAX_REPETITIONS
from runs.whole_number import MAX_BIGINT


class BisectBody(StrictBody):
    """A run of the experiment that failed, and how the versions are run."""

    cell: Annotated[int, Field(ge=1, le=MAX_BIGINT)]
    """The `id` in the runs of the experiment."""
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)] = 1
    """A version passes if most of its runs do."""
    budget: Budget | None = None
    """In the currency of your prices; null for none."""
    tool_mode: Mode | None = None
    """Null for that of the experiment; `hold_back` if that is `live`."""


class ProbedVersionShape(Shape):
    """A version that the search was run on, or may be."""

    number: int | None
    """Null for the draft."""
    outcome: Literal["passed", "failed", "unscored"] | None
    """Null if it was not run, or its runs have not been scored yet."""
    runs: list[int]


class BisectionShape(Shape):
    """Which version an example began to fail at, as far as it is known."""

    experiment: int
    """Its own; stop and resume it there."""
    source: int | None
    """The experiment with the failing run; null if it was deleted."""
    example: int
    """Its number in the dataset."""
    result: Literal["found", "always", "not_reproduced", "unscored"] | None
    """Null until the search is over. If `always`, no version that was run passes."""
    last_good: int | None
    """Number of the newest version known to pass before `first_bad`."""
    first_bad: int | None
    """Number of the oldest version known to fail after `last_good`; null for the draft,
    and if `is_bad_known` is false."""
    is_bad_known: bool
    versions: list[ProbedVersionShape]
    """The oldest first; the last one is the candidate that failed."""


def bisection_json(row: Bisection) -> Json:
    report = load_bisection(row.experiment)
    good, bad = report.state.last_good, report.state.first_bad
    return {
        "experiment": row.experiment_id,
        "source": row.source_id,
        "example": row.example.number,
        "result": report.state.kind,
        "last_good": None if good is None else report.versions[good].number,
        "first_bad": None if bad is None else report.versions[bad].number,
        "is_bad_known": bad is not None,
        "versions": [probed_version_json(one) for one in report.versions],
    }


def probed_version_json(one: ProbedVersion) -> Json:
    return {
        "number": one.number,
        "outcome": one.outcome,
        "runs": [cell.run_id for cell in one.cells if cell.run_id is not None],
    }


def bisect_example(
    request: HttpRequest, user: User, pk: str, body: BisectBody
) -> HttpResponse:
    """Start the search for the version at which a run began to fail."""
    cells = get_experiment_for_user(user, pk).cells.select_related(
        "experiment__dataset", "example", "candidate__agent", "candidate__version"
    )
    cell = cells.filter(pk=body.cell).first()
    if cell is None:
        raise field_problem("cell", f"The experiment has no run with id {body.cell}.")
    plan = BisectionPlan(body.repetitions, body.budget, body.tool_mode or "")
    with report_refusals("cell"):
        row = start_bisection(cell, by=user, plan=plan)
    location = reverse("api-experiment-bisection", args=[row.pk])
    return json_response(experiment_json(row), 201, Location=location)


def read_bisection(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """What the search has found so far."""
    experiment = get_experiment_for_user(user, pk)
    rows = Bisection.objects.select_related("experiment", "example")
    found = rows.filter(experiment=experiment).first()
    if found is None:
        raise not_found("Bisection", pk)
    return json_response(bisection_json(found))


ROUTES = [
    Route(
        "POST",
        "experiments/{id}/bisect",
        bisect_example,
        "Search for the first failing version",
        ExperimentShape,
        body=BisectBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "experiments/{id}/bisection",
        read_bisection,
        "Read the search for a failing version",
        BisectionShape,
    ),
]
