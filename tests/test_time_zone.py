"""The time zone of pages: as the browser reports it."""

from datetime import UTC, datetime

import pytest

from runs.models import Run
from runs.time_zone import ZONE_COOKIE
from tests.make import make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Asia/Calcutta", "2026-11-21"),
        ("Asia/Kathmandu", "2026-11-21"),
        ("America/New_York", "2026-11-20"),
        ("", "2026-11-20"),
        ("../../etc/passwd", "2026-11-20"),
        ("Nowhere/City", "2026-11-20"),
    ],
)
def test_the_days_of_a_filter_are_those_of_the_viewer(client, zone, day):
    ann = make_user()
    run = make_run(ann, title="Late question")
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    Run.objects.filter(pk=run.pk).update(created_at=at)
    client.force_login(ann)
    client.cookies[ZONE_COOKIE] = zone

    for asked in ("2026-11-20", "2026-11-21"):
        page = client.get(f"/runs/?begin={asked}&end={asked}").text
        assert ("Late question" in page) == (asked == day)


def test_times_on_pages_stay_in_utc_for_readers_without_a_script(client):
    ann = make_user()
    run = make_run(ann)
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    Run.objects.filter(pk=run.pk).update(created_at=at)
    client.force_login(ann)
    client.cookies[ZONE_COOKIE] = "Asia/Tokyo"

    assert "Nov 20, 2026, 18:30:00 UTC" in client.get("/runs/").text
