"""`GET /api/v1/providers`."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import ProviderOutage
from runs.serializers import format_timestamp
from tests.api.make_client import Api
from tests.make import make_provider, make_run, make_user

pytestmark = pytest.mark.django_db


def read_provider(user, slug):
    found = Api(user).get("providers").json()["data"]
    return next(one for one in found if one["slug"] == slug)


def test_lists_the_providers_that_the_user_may_see():
    ann = make_user()
    make_provider(ann, slug="own", name="Own")
    make_provider(slug="shared", name="Shared", visibility="everyone")
    make_provider(slug="hidden")
    make_provider(ann, slug="old", archived_at=timezone.now())

    said = Api(ann).get("providers").json()["data"]

    assert [(one["slug"], one["name"], one["available"]) for one in said] == [
        ("shared", "Shared", True),
        ("own", "Own", True),
    ]


def test_reports_an_outage_with_the_number_of_own_waiting_runs():
    ann, now = make_user(), timezone.now()
    provider = make_provider(ann, slug="local")
    outage = ProviderOutage.objects.create(
        provider=provider,
        started_at=now - timedelta(minutes=2),
        probe_at=now,
        error_code="transport",
        error_message="No server answers.",
    )
    for owner in (ann, make_user()):
        make_run(owner, status="waiting", waiting_provider=provider, waiting_since=now)

    said = read_provider(ann, "local")
    assert said["available"] is False
    assert said["outage"] == {
        "since": format_timestamp(outage.started_at),
        "error": {"code": "transport", "message": "No server answers."},
        "next_attempt_at": format_timestamp(now),
        "waiting_runs": 1,
    }
    assert said["unavailable_models"] == []
    outage.model = "big"
    outage.save()
    said = read_provider(ann, "local")
    assert (said["available"], said["outage"]) == (True, None)
    (only,) = said["unavailable_models"]
    assert (only["model"], only["waiting_runs"]) == ("big", 0)
    outage.ended_at = now
    outage.save()
    said = read_provider(ann, "local")
    assert (said["available"], said["outage"]) == (True, None)
