"""Schedules that run agents at set times."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent
from tools.ownership import filter_own_rows
from tools.text.translatable_field import TranslatableTextField


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own schedules; all for superusers."""
        return filter_own_rows(self, user)

    def on(self) -> Self:
        return self.filter(next_at__isnull=False)


class Schedule(models.Model):
    """An agent, its inputs, and the times at which it runs.

    A disabled schedule has no `next_at`.
    """

    class Overlap(models.TextChoices):
        """What happens if the previous run has not ended at the next time."""

        SKIP = "skip", _("Skip that run")
        START = "start", _("Start another run in parallel")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="schedules"
    )
    """Owns the runs; they have this user's permissions."""
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="schedules")
    name = models.CharField(max_length=120)
    inputs = models.JSONField(default=dict)
    cron = models.CharField(max_length=120)
    """Minute, hour, day of the month, month, day of the week."""
    time_zone = models.CharField(max_length=60, default="UTC")
    """IANA name of the time zone of `cron`."""
    overlap = models.CharField(max_length=5, choices=Overlap, default=Overlap.SKIP)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    """When a person last changed it; starting runs does not count."""

    next_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    """The last time that came: run, skipped or refused."""
    last_run = models.ForeignKey(
        "runs.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    missed = models.PositiveIntegerField(default=0)
    """Times without a worker just before `last_at`; one run caught up for all."""
    skipped = models.PositiveIntegerField(default=0)
    """Consecutive times skipped because an earlier run had not ended."""
    problem = TranslatableTextField(blank=True)
    """Why no run could start at `problem_at`; empty once one could."""
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
        return self.next_at is not None

    @property
    def has_disabled_owner(self) -> bool:
        """Whether it starts no runs although it is on."""
        return self.is_on and not self.owner.is_active
