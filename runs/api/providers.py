"""Providers in the API: whether they are available."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from runs.api.dispatch import json_response
from runs.api.serializers import Json, format_timestamp
from runs.models import Provider
from runs.services.providers.outages import OpenOutage, list_open_outages


def list_providers(request: HttpRequest, user: User) -> HttpResponse:
    """`GET /providers`: those that the user may see, and their outages."""
    rows = Provider.objects.visible_to(user).filter(archived_at=None)
    providers = list(rows.select_related("outage").order_by("slug"))
    outages = list_open_outages(providers, user)
    shapes = [provider_json(one, outages.get(one.pk)) for one in providers]
    return json_response({"providers": shapes})


def provider_json(provider: Provider, found: OpenOutage | None) -> Json:
    return {
        "slug": provider.slug,
        "name": provider.name,
        "available": found is None,
        "outage": None if found is None else outage_json(found),
    }


def outage_json(found: OpenOutage) -> Json:
    """Return an outage; `next_attempt_at` is null while a run tests the provider."""
    outage = found.outage
    probe_at = outage.probe_at if outage.probe_run_id is None else None
    return {
        "since": format_timestamp(outage.started_at),
        "error": {"code": outage.error_code, "message": outage.error_message},
        "next_attempt_at": format_timestamp(probe_at),
        "waiting_runs": found.waiting_runs,
    }
