"""The search field of a list page, and the query that its links keep."""

from typing import Any, TypeVar
from urllib.parse import urlencode

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


def encode_query(values: dict[str, str]) -> str:
    """Return the values that are set, as the part of a URL that others follow."""
    found = {name: value for name, value in values.items() if value}
    return f"{urlencode(found)}&" if found else ""
