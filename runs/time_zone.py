"""The time zone of a page: the viewer's, as the browser reports it in a cookie.

Only days of charts and filters depend on it; times are written for UTC, and the script
of all pages moves them.
"""

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

ZONE_COOKIE = "time_zone"


class ViewerTimeZoneMiddleware:
    """Activate the zone for each request of a page; the API has UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get(ZONE_COOKIE, "")
        if request.path.startswith("/api/") or name not in _list_zone_names():
            return self.get_response(request)
        with timezone.override(ZoneInfo(name)):
            return self.get_response(request)


def is_viewer_zone_known(request: HttpRequest) -> bool:
    """Whether the browser has reported a zone; without a script it never does."""
    return request.COOKIES.get(ZONE_COOKIE, "") in _list_zone_names()


@cache
def _list_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())
