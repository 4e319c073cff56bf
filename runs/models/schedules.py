"""Schedules: when agents run by the clock."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q

from runs.models.agents import Agent
from tools.ownership import own_rows


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    """Schedules by who may see them, and by whether they are on."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return one's own schedules; all for superusers."""
        return own_rows(self, user)

    def on(self) -> Self:
        """Return those that start runs."""
        return self.filter(next_at__isnull=False)


class Schedule(models.Model):
    """An agent, its inputs, and the times at which it runs.

    `next_at` says whether it is on: what is paused has no next time.
    """

    class Overlap(models.TextChoices):
        """What happens when a time comes while an earlier run is not over."""

        SKIP = "skip", "Leave that time out"
        START = "start", "Start another run beside it"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="schedules"
    )
    """Whose runs they are, and whose rights they have."""
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="schedules")
    name = models.CharField(max_length=120)
    inputs = models.JSONField(default=dict)
    cron = models.CharField(max_length=120)
    """Minute, hour, day of the month, month, day of the week."""
    time_zone = models.CharField(max_length=60, default="UTC")
    """The IANA name of the zone in which `cron` is read."""
    overlap = models.CharField(max_length=5, choices=Overlap, default=Overlap.SKIP)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    """When a person last changed it; starting runs leaves this alone."""

    next_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    """The last time that came: run, left out or refused."""
    last_run = models.ForeignKey(
        "runs.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    missed = models.PositiveIntegerField(default=0)
    """Times that passed unseen just before `last_at`, which made up for them."""
    skipped = models.PositiveIntegerField(default=0)
    """Times left out in a row, since an earlier run was not over."""
    problem = models.TextField(blank=True)
    """Why no run could be started at `problem_at`; empty once one could."""
    problem_at = models.DateTimeField(null=True)

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=Q(next_at__isnull=False),
                name="schedule_due",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], name="schedule_name_once"
            ),
            models.CheckConstraint(
                name="schedule_problem_has_a_time",
                condition=Q(problem="", problem_at=None)
                | ~Q(problem="") & Q(problem_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_on(self) -> bool:
        """Whether it starts runs."""
        return self.next_at is not None
