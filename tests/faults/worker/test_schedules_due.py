"""Workers that are killed while they start what is due."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run, Schedule
from runs.services.health.invariants import check_invariants
from tests.make import make_schedule

pytestmark = pytest.mark.faults

MANY = 150


@pytest.mark.slow
def test_each_time_has_one_run_whoever_is_killed(workers):
    one, due = make_schedule(), timezone.now() - timedelta(minutes=1)
    fields = {"agent": one.agent, "owner": one.owner, "inputs": one.inputs}
    Schedule.objects.bulk_create(
        Schedule(name=f"copy {n}", cron=one.cron, **fields) for n in range(MANY)
    )
    Schedule.objects.update(next_at=due)

    worker = workers.start(threads=1)
    workers.wait(lambda: Run.objects.count() > MANY // 10)
    worker.kill()
    workers.start(threads=1)
    workers.wait(lambda: not Schedule.objects.filter(next_at=due).exists())

    of_schedules = Run.objects.order_by("schedule").values_list("schedule", flat=True)
    every = Schedule.objects.order_by("pk").values_list("pk", flat=True)
    assert list(of_schedules) == list(every)
    assert not Schedule.objects.exclude(problem="").exists()
    workers.end()
    assert list(check_invariants()) == []
