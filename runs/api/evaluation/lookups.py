"""Rows that bodies name by their slugs."""

from collections.abc import Iterable
from typing import TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from runs.api.problems import field_problem
from runs.models import Dataset, Evaluator

M = TypeVar("M", bound=Model)


def find_by_slug(rows: QuerySet[M], field: str, slug: str) -> M:
    """Return the row; raise an `ApiProblem` that names the field."""
    found = rows.filter(slug=slug).first()
    if found is None:
        raise field_problem(field, f"{field.capitalize()} {slug!r} not found.")
    return found


def find_dataset(user: User, slug: str) -> Dataset:
    """Return the dataset; raise an `ApiProblem` if the user may not use it."""
    return find_by_slug(Dataset.objects.usable_by(user), "dataset", slug)


def find_evaluators(
    user: User, slugs: list[str], *, selected: Iterable[Evaluator] = ()
) -> list[Evaluator]:
    """Return the evaluators; raise an `ApiProblem` that names those missing.

    Those that are `selected` already can stay, whoever has archived them.
    """
    rows = Evaluator.objects.usable_by(user).filter(slug__in=slugs)
    kept = {row.slug: row for row in selected if row.slug in slugs}
    found = {row.slug: row for row in rows} | kept
    missing = [repr(slug) for slug in slugs if slug not in found]
    if missing:
        raise field_problem("evaluators", f"Not found: {', '.join(missing)}.")
    return list(found.values())
