"""The list in which a run was opened, in the URL of the run."""

from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, QueryDict

MAX_LIST_CHARACTERS = 2_000
LISTED_PARAMETER = "in"
"""Holds the filters of the list in which the run was opened; may be empty."""


def build_list_query(listed: str) -> str:
    """Return the query with which a run knows the list that it is opened in."""
    return f"?{urlencode({LISTED_PARAMETER: listed.removeprefix('?')})}"


def keep_list(request: HttpRequest, url: str) -> str:
    """Return the URL of a run, with the list of the page of it that sent the request.

    Without a script, or from a part that is updated live, a form does not know it.
    """
    sender = urlsplit(request.META.get("HTTP_REFERER", ""))
    listed = QueryDict(sender.query).get(LISTED_PARAMETER)
    if listed is None or sender.path != urlsplit(url).path:
        return url
    query = build_list_query(listed[:MAX_LIST_CHARACTERS])
    return f"{url}{query.replace('?', '&', 1) if '?' in url else query}"
