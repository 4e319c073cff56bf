"""URLs of the API, with or without a trailing slash; streams are in `runs.live`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from django.urls import URLPattern, path, re_path

from runs.api.dispatch import api_view, url_not_found
from runs.api.documentation import DOCUMENT_ROUTE
from runs.api.registry import ROUTES
from runs.api.route import Route, get_url_name


def build_urls(routes: Iterable[Route]) -> Iterator[URLPattern]:
    by_path = defaultdict[str, list[Route]](list)
    for route in routes:
        by_path[route.path].append(route)
    for where, found in by_path.items():
        yield re_path(found[0].pattern, api_view(found), name=get_url_name(where))


urlpatterns = [
    *build_urls(ROUTES),
    path("openapi.json", api_view([DOCUMENT_ROUTE]), name="api-openapi"),
    path("", url_not_found, name="api"),
    # `<path:rest>` matches no line break.
    re_path(r"^(?P<rest>[\s\S]+)$", url_not_found, name="api-nothing"),
]
