"""`/healthz`: the state of this installation, for programs."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs.services.health.status import check_health


@require_safe
@login_not_required
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """Answer 503 only if the database takes no writes; other problems are 200."""
    found = check_health()
    return JsonResponse(found.to_json(), status=200 if found.database.ok else 503)
