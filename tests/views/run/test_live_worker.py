"""Whether a run page says that no worker is running."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.store.database_clock import db_time_from_now
from runs.views.run.state import has_live_worker
from tests.make import make_worker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("seconds", "is_live"),
    [pytest.param(0, True, id="live"), pytest.param(-1800, False, id="silent")],
)
@pytest.mark.parametrize("hours", [1, -1])
def test_the_clock_of_the_web_server_does_not_matter(
    monkeypatch, hours, seconds, is_live
):
    make_worker(last_heartbeat=db_time_from_now(seconds))
    clock = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: clock)

    assert has_live_worker() is is_live
