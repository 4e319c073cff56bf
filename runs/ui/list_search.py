"""The search field of a list page."""

from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.http import HttpRequest

Rows = TypeVar("Rows", bound=QuerySet[Any])
MAX_SEARCH_CHARS = 200


def get_search_text(request: HttpRequest) -> str:
    """Return what the user searches for, from `?q=`."""
    return request.GET.get("q", "").replace("\0", "").strip()[:MAX_SEARCH_CHARS]


def search_rows(rows: Rows, text: str, *fields: str) -> Rows:
    """Return the rows that have each word of `text` in one of `fields`."""
    for word in text.split():
        found = Q()
        for field in fields:
            found |= Q(**{f"{field}__icontains": word})
        rows = rows.filter(found)
    return rows
