"""Evaluators in the API: list, read, create, change."""

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.etags import build_etag, check_if_match
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.evaluation.registry import EVALUATOR_KINDS, validate_evaluator_config
from runs.models import Evaluator
from runs.serializers import Json, format_timestamp
from runs.services.errors import FieldError
from runs.services.evaluators.save import save_evaluator


class EvaluatorBody(StrictBody):
    """A new evaluator."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    kind: str
    config: dict[str, Any] = {}
    """The settings of its kind."""


class EvaluatorChangeBody(StrictBody):
    """New settings; each change is a revision."""

    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    config: dict[str, Any] | None = None


class EvaluatorShape(Shape):
    """What turns a run into a score."""

    id: int
    slug: str
    name: str
    kind: str
    config: dict[str, Any]
    revision: int
    owner: str
    archived: bool
    updated_at: str | None


def evaluator_json(row: Evaluator) -> Json:
    return {
        "id": row.pk,
        "slug": row.slug,
        "name": row.name,
        "kind": row.kind,
        "config": row.config,
        "revision": row.revision,
        "owner": row.owner.get_username(),
        "archived": row.archived_at is not None,
        "updated_at": format_timestamp(row.updated_at),
    }


def get_visible_evaluator(user: User, pk: str) -> Evaluator:
    rows = Evaluator.objects.visible_to(user).select_related("owner")
    found = rows.filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Evaluator", pk)
    return found


def list_evaluators(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """The evaluators that the user may see, the newest first."""
    rows = Evaluator.objects.visible_to(user).select_related("owner")
    return json_response(paginate_by_id(rows, query, evaluator_json))


def read_evaluator(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One evaluator with its settings and an ETag."""
    return respond_with_evaluator(get_visible_evaluator(user, pk))


def respond_with_evaluator(row: Evaluator) -> HttpResponse:
    return json_response(evaluator_json(row), ETag=get_evaluator_etag(row))


def get_evaluator_etag(row: Evaluator) -> str:
    return build_etag(f"Evaluator {row.pk} {row.updated_at.isoformat()}")


def create_evaluator(
    request: HttpRequest, user: User, body: EvaluatorBody
) -> HttpResponse:
    """Create a private evaluator."""
    if body.kind not in EVALUATOR_KINDS:
        known = ", ".join(sorted(EVALUATOR_KINDS))
        raise field_problem("kind", f"Unknown kind. Kinds: {known}.")
    check_config(body.kind, body.config)
    row = Evaluator(owner=user, name=body.name, kind=body.kind, config=body.config)
    save_evaluator(row, by=user)
    location = reverse("api-evaluator", args=[row.pk])
    return json_response(evaluator_json(row), 201, Location=location)


def change_evaluator(
    request: HttpRequest, user: User, pk: str, body: EvaluatorChangeBody
) -> HttpResponse:
    """Change the name or the settings; scores keep the revision that gave them."""
    seen = get_visible_evaluator(user, pk)
    if not Evaluator.objects.editable_by(user).filter(pk=seen.pk).exists():
        raise field_problem("id", "You cannot edit this evaluator.", 403)
    with transaction.atomic():
        row = Evaluator.objects.select_for_update().filter(pk=seen.pk).first()
        if row is None:
            raise not_found("Evaluator", pk)
        check_if_match(request, get_evaluator_etag(row))
        if body.config is not None:
            check_config(row.kind, body.config)
            row.config = body.config
        row.name = body.name or row.name
        save_evaluator(row, by=user)
    return respond_with_evaluator(row)


def check_config(kind: str, config: dict[str, Any]) -> None:
    """Raise an `ApiProblem` with each wrong setting."""
    errors = [
        FieldError(f"config.{field}".rstrip("."), str(message))
        for field, message in validate_evaluator_config(kind, config)
    ]
    if errors:
        raise ApiProblem(422, errors)


ROUTES = [
    Route(
        "GET",
        "evaluators",
        list_evaluators,
        "List evaluators",
        Page[EvaluatorShape],
        query=PageQuery,
    ),
    Route(
        *("POST", "evaluators", create_evaluator, "Create an evaluator"),
        EvaluatorShape,
        scope="build",
        body=EvaluatorBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        *("GET", "evaluators/{id}", read_evaluator, "Read an evaluator"),
        EvaluatorShape,
        has_etag=True,
    ),
    Route(
        *("PATCH", "evaluators/{id}", change_evaluator, "Change an evaluator"),
        EvaluatorShape,
        scope="build",
        body=EvaluatorChangeBody,
        has_etag=True,
    ),
]
