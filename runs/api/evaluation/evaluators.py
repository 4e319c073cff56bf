"""Evaluators in the API: create, share, change."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    save_groups,
    share_definition,
)
from runs.api.problems import ApiProblem, field_problem
from runs.api.route import Route
from runs.evaluation.registry import EVALUATOR_KINDS
from runs.models import Evaluator
from runs.serializers import Json
from runs.services.errors import FieldError
from runs.services.evaluators.save import (
    duplicate_evaluator,
    find_evaluator_problems,
    save_evaluator,
)


class EvaluatorFields(SharingBody):
    """What can be changed of an evaluator; what is left out stays."""

    config: dict[str, Any] = {}
    """The settings of its kind; each change is a revision."""


class NewEvaluatorBody(EvaluatorFields):
    """The body of `POST /api/v1/evaluators`."""

    name: Name
    kind: str


class EvaluatorBody(EvaluatorFields):
    """The body of `PATCH /api/v1/evaluators/{id}`."""

    name: Name = ""


class EvaluatorShape(DefinitionShape):
    """What turns a run into a score."""

    kind: str
    config: dict[str, Any]
    revision: int


def evaluator_json(row: Evaluator) -> Json:
    return {
        **definition_json(row),
        "kind": row.kind,
        "config": row.config,
        "revision": row.revision,
    }


EVALUATORS = Definition(
    "evaluator",
    Evaluator,
    evaluator_json,
    lambda row, _user: evaluator_json(row),
    duplicate=duplicate_evaluator,
)


def create_evaluator(
    request: HttpRequest, user: User, body: NewEvaluatorBody
) -> HttpResponse:
    """Create an evaluator."""
    if body.kind not in EVALUATOR_KINDS:
        known = ", ".join(sorted(EVALUATOR_KINDS))
        raise field_problem("kind", f"Unknown kind. Kinds: {known}.")
    evaluator = Evaluator(owner=user, kind=body.kind)
    with transaction.atomic():
        store_evaluator(evaluator, body, by=user)
    return EVALUATORS.respond(user, evaluator.pk, 201)


def change_evaluator(
    request: HttpRequest, user: User, pk: str, body: EvaluatorBody
) -> HttpResponse:
    """Change an evaluator; scores keep the revision that gave them."""
    with EVALUATORS.edit(request, user, pk) as evaluator:
        store_evaluator(evaluator, body, by=user)
    return EVALUATORS.respond(user, evaluator.pk)


def store_evaluator(
    evaluator: Evaluator, body: NewEvaluatorBody | EvaluatorBody, *, by: User
) -> None:
    """Save the evaluator in the caller's transaction; raise a 422."""
    sent = body.model_fields_set
    if "name" in sent:
        evaluator.name = body.name
    if "config" in sent or not evaluator.pk:
        evaluator.config = body.config
        check_config(evaluator)
    share_definition(evaluator, body)
    save_evaluator(evaluator, by=by)
    save_groups(evaluator, body)


def check_config(evaluator: Evaluator) -> None:
    """Raise an `ApiProblem` with each wrong setting."""
    errors = [
        FieldError(f"config.{field}".rstrip("."), str(message))
        for field, message in find_evaluator_problems(evaluator)
    ]
    if errors:
        raise ApiProblem(422, errors)


ROUTES = [
    *build_common_routes(EVALUATORS, EvaluatorShape, EvaluatorShape),
    Route(
        *("POST", "evaluators", create_evaluator, "Create an evaluator"),
        EvaluatorShape,
        scope="build",
        body=NewEvaluatorBody,
        status=201,
        is_idempotent=True,
        has_etag=True,
    ),
    Route(
        *("PATCH", "evaluators/{id}", change_evaluator, "Change an evaluator"),
        EvaluatorShape,
        scope="build",
        body=EvaluatorBody,
        has_etag=True,
    ),
]
