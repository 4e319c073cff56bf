"""The migration that counts the durations of runs indexed before it."""

from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from runs.models import DailyRunDurations
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run

pytestmark = pytest.mark.django_db

migration = import_module("runs.migrations.0037_backfill_durations")


def counted() -> set[tuple[object, ...]]:
    columns = ("day", "agent", "owner", "bucket", "runs")
    return set(DailyRunDurations.objects.values_list(*columns))


def test_it_counts_what_a_worker_would_have_counted(monkeypatch):
    monkeypatch.setattr(migration, "WINDOW", 2)
    agents = [make_agent(), make_agent()]
    now = timezone.now()
    for n in range(7):
        started = now - timedelta(seconds=3**n / 50)
        make_run(
            agent=agents[n % 2], status="succeeded", started_at=started, ended_at=now
        )
    index_runs()
    expected = counted()
    DailyRunDurations.objects.all().delete()

    migration.count_durations(apps, SimpleNamespace(connection=connection))

    assert len(expected) == 7
    assert counted() == expected
