"""Invariants of schedules and their runs."""

from collections.abc import Iterator

from django.db.models import F

from runs.models import Run, Schedule


def runs_fit_their_schedules() -> Iterator[str]:
    """A run of a schedule has its owner and its agent, and was started by it."""
    runs = Run.objects.filter(schedule__isnull=False).exclude(
        owner=F("schedule__owner"), agent=F("schedule__agent"), source="schedule"
    )
    found = runs.values_list("pk", "schedule", "source")
    for pk, schedule, source in found.iterator():
        yield (
            f"run {pk} of schedule {schedule} was started {source}, or for another "
            "owner or agent"
        )
    schedules = Schedule.objects.filter(last_run__isnull=False).exclude(
        last_run__schedule=F("pk")
    )
    for pk, run in schedules.values_list("pk", "last_run"):
        yield f"schedule {pk} has the last run {run}, which is none of its own"
