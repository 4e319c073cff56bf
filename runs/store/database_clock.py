"""The database's clock, which all conditions on time use."""

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now

from runs.models import Run


def from_now(seconds: float) -> "ExpressionWrapper[Any]":
    """Return the moment `seconds` from now, negative for the past."""
    return ExpressionWrapper(
        Now() + timedelta(seconds=seconds), output_field=DateTimeField()
    )


class Moment(NamedTuple):
    """The same for statements that are written out."""

    sql: str
    values: Sequence[Any]
    """What fills its holes."""


@lru_cache(64)
def moment(seconds: float = 0.0) -> Moment:
    """Return the SQL of the moment `seconds` from now; made once."""
    query = Run.objects.all().query
    compiler = query.get_compiler(connection=connection)
    wanted = from_now(seconds) if seconds else Now()
    sql, values = compiler.compile(wanted.resolve_expression(query))
    return Moment(sql, tuple(values))
