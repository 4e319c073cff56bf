"""The history of the queue."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import QueueSample
from runs.worker.sample_queue import sample_queue
from tests.make import make_run, make_worker

pytestmark = pytest.mark.django_db


def test_writes_one_row_a_minute():
    make_run(queued_at=timezone.now() - timedelta(seconds=40))
    make_run(status="running")
    make_worker()

    sample_queue()
    sample_queue()

    rows = QueueSample.objects.all()
    assert len(rows) <= 2  # a minute may have ended between the two
    assert (rows[0].queued, rows[0].running, rows[0].workers) == (1, 1, 1)
    assert 39 < rows[0].wait < 100


def test_forgets_what_is_older_than_a_week():
    old = timezone.now() - timedelta(days=8)
    QueueSample.objects.create(minute=old, queued=0, running=0, wait=0, workers=0)

    sample_queue()

    assert not QueueSample.objects.filter(minute=old).exists()


def test_the_clock_of_the_worker_does_not_matter(monkeypatch):
    make_run(queued_at=timezone.now() - timedelta(seconds=40))
    make_worker()
    clock = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: clock)

    sample_queue()

    row = QueueSample.objects.get()
    assert row.minute < clock - timedelta(minutes=50)
    assert row.workers == 1
    assert 39 < row.wait < 100
