"""A worker process at its start."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.worker import process
from tests.make import make_worker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("hours", "warnings"),
    [
        pytest.param(0, 0, id="right"),
        pytest.param(1, 1, id="fast"),
        pytest.param(-1, 1, id="slow"),
    ],
)
def test_a_worker_with_a_wrong_clock_says_so(hours, warnings, monkeypatch, caplog):
    worker, now = make_worker(), timezone.now()
    clock = now + timedelta(hours=hours)
    monkeypatch.setattr(process.timezone, "now", lambda: clock)

    process.warn_about_wrong_clock(worker)

    assert len(caplog.records) == warnings
