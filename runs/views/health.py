"""`/healthz`: whether the parts of this installation work, for programs."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs.services.check_health import check_health


@require_safe
@login_not_required
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """Answer 503 only where the database takes no writes; 200 with `degraded` else."""
    found = check_health()
    return JsonResponse(found.shape(), status=200 if found.database.ok else 503)
