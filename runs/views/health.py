"""The state of this installation, for programs; `/livez` is in `agentsite.asgi`."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs.services.health.status import check_database, check_health


@require_safe
@login_not_required
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """Answer 503 only if the database takes no writes; other problems are 200."""
    found = check_health()
    return JsonResponse(found.to_json(), status=200 if found.database.ok else 503)


@require_safe
@login_not_required
@never_cache
def readiness(request: HttpRequest) -> HttpResponse:
    """Answer 503 while this process cannot serve requests: without a database."""
    is_ready = check_database().ok
    return JsonResponse(
        {"status": "ok" if is_ready else "down"}, status=200 if is_ready else 503
    )
