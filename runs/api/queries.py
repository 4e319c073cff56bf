"""Query strings of the API, and the pages of its lists."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar, get_origin

from django.db.models import Model, QuerySet
from django.http import QueryDict
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runs.api.problems import ApiProblem, field_problem, validation_problem
from runs.whole_number import MAX_BIGINT, parse_whole_number

MAX_PAGE = 200
Id = Annotated[int, Field(ge=0, le=MAX_BIGINT)]
"""The number of a row."""

Q = TypeVar("Q", bound=BaseModel)
M = TypeVar("M", bound=Model)
S = TypeVar("S")


class Query(BaseModel):
    """A query string; unknown parameters are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PageQuery(Query):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=200)] = ""
    """The `next` of the page before."""


class Page(BaseModel, Generic[S]):
    """A part of a list."""

    model_config = ConfigDict(extra="forbid")

    data: list[S]
    next: str | None = Field(
        description="Cursor of the next page; null on the last one."
    )


def parse_query(query: QueryDict, kind: type[Q]) -> Q:
    """Return the parameters of a URL; raise `ApiProblem` with the name of each error.

    A parameter may be repeated only if it takes several values.
    """
    given: dict[str, Any] = {}
    for name, values in query.lists():
        if any("\0" in value for value in values):
            raise field_problem(name[:80], "The value contains a null character.")
        field = kind.model_fields.get(name)
        if field is not None and is_list_type(field.annotation):
            given[name] = values
        elif len(values) > 1:
            raise field_problem(name[:80], "Give this parameter once.")
        else:
            given[name] = values[0]
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise validation_problem(error) from None


def is_list_type(annotation: Any) -> bool:
    return get_origin(annotation) in (tuple, list)


def paginate_by_id(
    rows: QuerySet[M],
    query: PageQuery,
    shape: Callable[[M], S],
    *,
    oldest_first: bool = False,
) -> dict[str, Any]:
    """Return a page of rows in the order of their ids, by default the newest first."""
    if query.cursor:
        number = parse_whole_number(query.cursor)
        if number is None:
            raise invalid_cursor()
        rows = (
            rows.filter(pk__gt=number) if oldest_first else rows.filter(pk__lt=number)
        )
    found = list(rows.order_by("pk" if oldest_first else "-pk")[: query.limit + 1])
    more = len(found) > query.limit
    return {
        "data": [shape(row) for row in found[: query.limit]],
        "next": str(found[query.limit - 1].pk) if more else None,
    }


def invalid_cursor() -> ApiProblem:
    return field_problem(
        "cursor", "Not a cursor of this list. Send the `next` of the page before."
    )
