"""Metrics for Prometheus, for whoever has the token."""

import secrets

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from runs.services.metrics.collect import build_registry


@require_safe
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics; 404 if no token is set, 401 without that token."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not has_metrics_token(request):
        refusal = HttpResponse("The token is missing or wrong.\n", status=401)
        refusal.headers["Content-Type"] = "text/plain; charset=utf-8"
        refusal.headers["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refusal
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(build_registry()), content_type=content_type)


def has_metrics_token(request: HttpRequest) -> bool:
    """Whether the request has the header `Authorization: Bearer TOKEN`."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    is_equal = secrets.compare_digest(
        token.strip().encode(), settings.METRICS_TOKEN.encode()
    )
    return scheme.lower() == "bearer" and is_equal
